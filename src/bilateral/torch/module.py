"""The solver as a layer of a network."""

import torch
from torch import Tensor, nn

from bilateral import validation as checks
from bilateral.torch.functional import solve
from bilateral.torch.options import config


class BilateralSolver(nn.Module):
    """Smooths targets along the edges of references: `bilateral.torch.solve` as a layer.

    Parameters
    ----------
    sigma_xy, sigma_luma, sigma_chroma, blur, tolerance, max_iterations, preconditioner, \
reference_max
        As for `solve`. They are configuration, not in the `state_dict`.
    smoothness : float
        The paper's lambda, or where it starts if it is learned.
    learn_smoothness : bool
        Make the smoothness a parameter. What is stored and learned is its logarithm,
        `log_smoothness`: it stays positive whatever the optimizer does, and a step is a factor,
        which suits a number that may be 0.1 as well as 1000.

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
        reference_max: float | None = None,
    ) -> None:
        super().__init__()
        self.sigma_xy = sigma_xy
        self.sigma_luma = sigma_luma
        self.sigma_chroma = sigma_chroma
        self.blur = blur
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.preconditioner = preconditioner
        self.reference_max = reference_max
        config(
            3,
            sigma_xy,
            sigma_luma,
            sigma_chroma,
            blur,
            tolerance,
            max_iterations,
            preconditioner,
            reference_max,
        )  # raises if something is wrong
        self._fixed = checks.positive("smoothness", smoothness)
        start = torch.tensor(self._fixed, dtype=torch.float64).log().to(torch.get_default_dtype())
        self.log_smoothness = nn.Parameter(start) if learn_smoothness else None

    @property
    def smoothness(self) -> float | Tensor:
        """The paper's lambda: a number, or a differentiable tensor if it is learned."""
        return self._fixed if self.log_smoothness is None else self.log_smoothness.exp()

    def forward(
        self, reference: Tensor, target: Tensor, confidence: Tensor | None = None
    ) -> Tensor:
        """Smooth a target; shapes as for `solve`."""
        return solve(
            reference,
            target,
            confidence,
            sigma_xy=self.sigma_xy,
            sigma_luma=self.sigma_luma,
            sigma_chroma=self.sigma_chroma,
            smoothness=self.smoothness,
            blur=self.blur,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            preconditioner=self.preconditioner,
            reference_max=self.reference_max,
        )

    def extra_repr(self) -> str:
        """What `print` shows."""
        sigmas = f"{self.sigma_xy:g}, {self.sigma_luma:g}, {self.sigma_chroma:g}"
        value = self.smoothness
        if isinstance(value, Tensor):
            return f"sigmas=({sigmas}), smoothness={value.item():.4g}, learned"
        return f"sigmas=({sigmas}), smoothness={value:.4g}"
