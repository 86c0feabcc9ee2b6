"""Median filter for tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation
from bilateral.filters.median import median as median_of_array
from bilateral.torch import operators
from bilateral.torch.tasks import tensors
from bilateral.torch.untraced import untraced


def median(image: Tensor, size: int = 5) -> Tensor:
    """Replace every value by the median of the size x size values around it.

    This is `bilateral.median` for tensors. Tensors on a CUDA device are filtered there. The result
    has no gradient: it is a choice of values.

    Parameters
    ----------
    image : (B, C, H, W) or (C, H, W) tensor
        The images to filter, of any real dtype; each channel is filtered separately. NaN is a
        missing value: the median is that of the other values in the window, or the mean of the
        middle two if their number is even. Beyond its border, an image is continued by its mirror
        image.
    size : {3, 5}
        Side of the window in pixels.

    Returns
    -------
    tensor
        Of the image's shape, dtype and device.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> image = torch.ones(1, 4, 5)
    >>> image[0, 1, 2] = 100
    >>> image[0, 3, 4] = torch.nan
    >>> bool((bilateral.torch.median(image, size=3) == 1).all())
    True
    """
    batch = tensors.maps("image", image, "bilateral.median")
    size = validation.one_of("size", size, (3, 5))
    return tensors.like(_filter(batch, size), image)


def _apply(batch: Tensor, size: int) -> Tensor:
    if tensors.on_cuda(batch):
        from bilateral.torch.cuda.tasks.pixels import median

        with operators.on_device_of(batch), torch.no_grad():
            filtered: Tensor = median(batch, size)
        return filtered
    planes = batch.reshape(-1, *batch.shape[2:])
    out = torch.stack([torch.from_numpy(median_of_array(tensors.array(p), size)) for p in planes])
    return out.to(batch.dtype).view(batch.shape)


_filter = untraced(_apply)
