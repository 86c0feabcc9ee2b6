"""The solver as a layer of a network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bilateral import validation
from bilateral.numerics import policy
from bilateral.torch.functional import solve
from bilateral.torch.options import LayerOptions


class BilateralSolver(nn.Module):
    """Smooth targets along the edges of references: `bilateral.torch.solve` as a layer.

    Parameters
    ----------
    sigma_xy, sigma_luma, sigma_chroma, blur, tolerance, max_iterations, preconditioner, model, \
slope_smoothness, slope_ridge, clamp, reference_max
        As for `solve`. The `state_dict` does not contain them.
    smoothness : float
        The paper's lambda; its initial value if it is learned.
    learn_smoothness : bool
        Make the smoothness a parameter. The layer stores and learns its logarithm,
        `log_smoothness`: the smoothness stays positive whatever the optimizer does, and a step is a
        factor, which suits a number that may be 0.1 as well as 1000.

    Examples
    --------
    >>> import torch
    >>> from bilateral.torch import BilateralSolver
    >>> layer = BilateralSolver(sigma_xy=4, smoothness=2.0, learn_smoothness=True)
    >>> photo, noisy = torch.rand(2, 3, 24, 32), torch.rand(2, 1, 24, 32)
    >>> layer(photo, noisy).var().backward()
    >>> bool(layer.log_smoothness.grad < 0), round(layer.smoothness.item(), 4)
    (True, 2.0)
    """

    @validation.keywords()
    def __init__(
        self,
        *,
        sigma_xy: float = 8,
        sigma_luma: float = 8,
        sigma_chroma: float = 8,
        smoothness: float = 4.0,
        learn_smoothness: bool = False,
        blur: str | tuple[float, float, float] = "paper",
        tolerance: float = 1e-3,
        max_iterations: int | None = None,
        preconditioner: str = "multigrid",
        model: str = "constant",
        slope_smoothness: float = policy.SLOPE_SMOOTHNESS,
        slope_ridge: float | None = policy.SLOPE_RIDGE,
        clamp: bool = True,
        reference_max: float | None = None,
    ) -> None:
        options = dict(locals())
        for name in ("self", "__class__", "smoothness", "learn_smoothness"):
            options.pop(name, None)
        super().__init__()
        LayerOptions.checked(options, channels=3)  # raises if an option is invalid
        self._option_names = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)
        learn_smoothness = validation.flag("learn_smoothness", learn_smoothness)
        self._smoothness = validation.fixed_smoothness(smoothness)
        start = torch.tensor(self._smoothness, dtype=torch.float64).log()
        start = start.to(torch.get_default_dtype())
        self.log_smoothness = nn.Parameter(start) if learn_smoothness else None

    @property
    def smoothness(self) -> float | Tensor:
        """The paper's lambda: a number, or a differentiable tensor if it is learned."""
        return self._smoothness if self.log_smoothness is None else self.log_smoothness.exp()

    @validation.keywords(photo="reference", depth="target")
    def forward(
        self, reference: Tensor, target: Tensor, confidence: Tensor | None = None
    ) -> Tensor:
        """Smooth a target; shapes as for `solve`."""
        options: dict[str, Any] = {name: getattr(self, name) for name in self._option_names}
        return solve(reference, target, confidence, smoothness=self.smoothness, **options)

    def extra_repr(self) -> str:
        """Describe the options for `print`."""
        names = "sigma_xy", "sigma_luma", "sigma_chroma"
        sigmas = ", ".join(f"{getattr(self, name):g}" for name in names)
        value = self.smoothness
        learned = isinstance(value, Tensor)
        number = value.item() if isinstance(value, Tensor) else value
        parts = [f"sigmas=({sigmas})", f"smoothness={number:.4g}"]
        parts += ["learned"] if learned else []
        parts += [f"model={self.model!r}"] if self.model != "constant" else []
        return ", ".join(parts)
