"""The bilateral solver as a differentiable layer for PyTorch.

>>> import torch
>>> import bilateral.torch
>>> photo = torch.zeros(1, 3, 32, 32)
>>> photo[..., 16:] = 1
>>> depth = torch.rand(1, 1, 32, 32, requires_grad=True)
>>> smooth = bilateral.torch.solve(photo, depth, smoothness=32)
>>> smooth.square().mean().backward()
>>> smooth.shape == depth.grad.shape
True
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "bilateral.torch needs PyTorch, which is not installed. "
        "Install it with: pip install 'bilateral[torch]'",
        name="torch",
    ) from error

from bilateral.torch.filters import domain_transform
from bilateral.torch.functional import solve
from bilateral.torch.module import BilateralSolver
from bilateral.torch.robust import solve_robust
from bilateral.torch.segmentation import refine_segmentation
from bilateral.torch.tasks.colorize import colorize
from bilateral.torch.tasks.completion import complete_depth
from bilateral.torch.tasks.defocus import defocus
from bilateral.torch.tasks.depth import refine_depth
from bilateral.torch.tasks.median import median
from bilateral.torch.tasks.polish import polish
from bilateral.torch.tasks.superres import superres_depth
from bilateral.torch.warm_up import warm_up

__all__ = [
    "BilateralSolver",
    "colorize",
    "complete_depth",
    "defocus",
    "domain_transform",
    "median",
    "polish",
    "refine_depth",
    "refine_segmentation",
    "solve",
    "solve_robust",
    "superres_depth",
    "warm_up",
]
