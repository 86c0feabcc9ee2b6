"""Compile the CUDA kernels ahead of the first call."""

from __future__ import annotations

from collections.abc import Callable

import torch

from bilateral import validation
from bilateral.torch import operators


def warm_up(
    device: torch.device | str | int | None = None,
    *,
    capability: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Compile the CUDA kernels of usual calls, so that the first call need not wait for them.

    The kernels are kept on disk, beside those of Triton (the environment variable
    TRITON_CACHE_DIR, or ``~/.triton/cache``). Without this call, the first solve on a new machine
    takes some seconds. Other processes find what this one has compiled.

    Parameters
    ----------
    device : torch.device, str or int, optional
        The CUDA device that will run. Default: the current one.
    capability : int, optional
        Compute capability to compile for, as 90 for 9.0, instead of that of a device. This needs
        no GPU, for example while an image for containers is built.
    progress : callable, optional
        Called with the number of kernels that are compiled so far, and with their number in total.

    Returns
    -------
    int
        Number of kernels that were compiled; 0 if all of them were there.

    Examples
    --------
    >>> import bilateral.torch
    >>> bilateral.torch.warm_up()  # doctest: +SKIP
    281
    """
    if capability is None:
        if not torch.cuda.is_available():
            raise RuntimeError(
                "bilateral.torch.warm_up: PyTorch finds no CUDA device here. To compile for a "
                "device of another machine, give its compute capability, as capability=90."
            )
        major, minor = torch.cuda.get_device_capability(device)
        capability = 10 * major + minor
    elif device is not None:
        raise ValueError("bilateral.torch.warm_up: give either device or capability, not both.")
    else:
        capability = validation.count("capability", capability, 50)
    count: int = operators.load_cuda_operators().compile_usual(capability, progress)
    return count
