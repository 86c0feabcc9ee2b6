"""Hold the options of a layer in types that an operator's schema knows."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from bilateral.numerics.options import GridOptions, SolveOptions

_TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    float | None: "float?",
    str: "str",
    str | None: "str?",
    tuple[float, float, float]: "float[]",
}
_FIELDS = fields(GridOptions) + fields(SolveOptions)
_GRID_NAMES = tuple(field.name for field in fields(GridOptions))
_SOLVE_NAMES = tuple(field.name for field in fields(SolveOptions))

SCHEMA = ", ".join(f"{_TYPES[field.type]} {field.name}" for field in _FIELDS)
"""The options as arguments in the schema of an operator."""
COUNT = len(_FIELDS)
"""Number of these arguments."""
FEATURE_CHANNELS = 2
"""A reference with two channels is no picture: tasks give two features of their own."""


@dataclass(frozen=True)
class LayerOptions:
    """Options of one call besides its tensors and the smoothness."""

    grid: GridOptions
    solve: SolveOptions

    @classmethod
    def checked(cls, arguments: Mapping[str, Any], channels: int) -> Self:
        """Check the options among the arguments of a call, for a reference of so many channels."""
        return cls(GridOptions.checked(arguments, 2 + channels), SolveOptions.checked(arguments))

    @classmethod
    def from_arguments(cls, *values: Any) -> Self:
        """Build the options from the last arguments of an operator."""
        plain: Any = [tuple(value) if isinstance(value, list) else value for value in values]
        size = len(_GRID_NAMES)
        return cls(GridOptions(*plain[:size]), SolveOptions(*plain[size:]))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The last arguments of an operator."""
        return (
            *(getattr(self.grid, name) for name in _GRID_NAMES),
            *(getattr(self.solve, name) for name in _SOLVE_NAMES),
        )
