"""What a layer is configured with, checked, in types that an operator's schema knows."""

from dataclasses import dataclass
from typing import Any

from bilateral import validation as checks
from bilateral.solver import PRECONDITIONERS


@dataclass(frozen=True)
class Config:
    """All that decides about grid and solve besides the tensors."""

    sigmas: tuple[float, float, float]
    blur: tuple[float, float, float]
    reference_max: float | None
    tolerance: float
    max_iterations: int
    preconditioner: str
    exact: bool = False
    """Solve to a part of the tolerance: a confidence's gradient magnifies what error is left."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the operators take them, after their tensors."""
        return (
            self.sigmas,
            self.blur,
            self.reference_max,
            self.tolerance,
            self.max_iterations,
            self.preconditioner,
            self.exact,
        )


def config(
    channels: int,
    sigma_xy: float,
    sigma_luma: float,
    sigma_chroma: float,
    blur: str | tuple[float, float, float],
    tolerance: float,
    max_iterations: int | None,
    preconditioner: str,
    reference_max: float | None,
) -> Config:
    """Check the options for a reference with this many channels."""
    return Config(
        (
            checks.positive("sigma_xy", sigma_xy),
            checks.positive("sigma_luma", sigma_luma),
            checks.positive("sigma_chroma", sigma_chroma),
        ),
        checks.blur(blur, 2 + channels),
        None if reference_max is None else checks.positive("reference_max", reference_max),
        checks.not_negative("tolerance", tolerance),
        100 if max_iterations is None else checks.count("max_iterations", max_iterations, 0),
        checks.choice("preconditioner", preconditioner, PRECONDITIONERS),
    )
