"""Hold the checked options of a solve: one object from the public call to the backend.

A new option is one field here, with its check, plus the signature and the docstring of each public
function that offers it. Everything in between passes the object on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from bilateral import validation
from bilateral.numerics import policy

Check = Callable[[str, Any], Any]


def _option(check: Check, **default: Any) -> Any:
    """Declare an option with its check, and with its default if it has one."""
    return field(metadata={"check": check}, **default)


def _one_of(choices: tuple[str, ...]) -> Check:
    return lambda name, value: validation.choice(name, value, choices)


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _iterations(name: str, value: int | None) -> int:
    return policy.MAX_ITERATIONS if value is None else validation.count(name, value, 0)


class Options:
    """Options by name, each with its check."""

    checks: ClassVar[dict[str, Check]]
    """Check of each option that a caller may give."""

    @classmethod
    def checked(cls, arguments: Mapping[str, Any]) -> Self:
        """Check the options among the arguments of a call, such as its ``locals()``.

        An option that the call does not have keeps its default.
        """
        given = {name: arguments[name] for name in cls.checks if name in arguments}
        return cls(**{name: cls.checks[name](name, value) for name, value in given.items()})


@dataclass(frozen=True)
class GridOptions(Options):
    """How to build the grid of an image."""

    sigma_xy: float = _option(validation.positive)
    sigma_luma: float = _option(validation.positive)
    sigma_chroma: float = _option(validation.positive)
    blur: tuple[float, float, float] = _option(lambda _, value: value)
    """Weights of B-bar: centre, space, range."""
    reference_max: float | None = _option(_or_none(validation.positive))

    @classmethod
    def checked(cls, arguments: Mapping[str, Any], dimensions: int = 5) -> Self:
        """Check the options; the weights of a named blur depend on the grid's dimensions."""
        weights = validation.blur(arguments["blur"], dimensions)
        return super().checked({**arguments, "blur": weights})


@dataclass(frozen=True)
class SolveOptions(Options):
    """How to solve a system."""

    tolerance: float = _option(validation.not_negative, default=1e-3)
    """Stop at this estimated RMS error, relative to the range of the known values."""
    max_iterations: int = _option(_iterations, default=policy.MAX_ITERATIONS)
    preconditioner: str = _option(_one_of(policy.PRECONDITIONERS), default="multigrid")
    initial: str | None = _option(_or_none(_one_of(policy.INITIALS)), default=None)
    """Start of PCG; None: the start that suits the preconditioner."""
    model: str = _option(_one_of(policy.MODELS), default="constant")
    """What a vertex holds: one value, or a plane."""
    slope_smoothness: float = _option(validation.positive, default=policy.SLOPE_SMOOTHNESS)
    slope_ridge: float | None = _option(
        _or_none(validation.not_negative), default=policy.SLOPE_RIDGE
    )
    """None: both penalties of the slopes follow the noise."""
    clamp: bool = _option(validation.flag, default=True)
    """Keep planes within the range of the known values."""
    fixed_steps: bool = False
    """Take exactly `max_iterations` steps, whatever the error."""
    checks_error: bool = True
    """Let multigrid check an error estimate that may not hold; see `policy.estimate_holds`."""
    exact: bool = False
    """Solve to a fraction of the tolerance, as the gradient of a confidence needs it."""

    @classmethod
    def checked_with_method(cls, arguments: Mapping[str, Any]) -> Self:
        """Check the options of a call that also has the argument `method`."""
        if arguments["method"] is None:
            return cls.checked(arguments)
        validation.choice("method", arguments["method"], policy.METHODS)
        validation.choice("model (method='paper')", arguments["model"], ("constant",))
        preconditioner, initial = arguments["preconditioner"], arguments["initial"] or "pyramid"
        choices = ("pyramid", "multigrid")
        validation.choice("preconditioner (method='paper')", preconditioner, choices)
        validation.choice("initial (method='paper')", initial, ("pyramid",))
        steps = arguments["max_iterations"]
        steps = policy.PAPER_ITERATIONS if steps is None else steps
        fixed = {"preconditioner": "pyramid", "initial": "pyramid", "max_iterations": steps}
        return replace(cls.checked({**arguments, **fixed}), fixed_steps=True)

    def __post_init__(self) -> None:
        if self.planar:
            name = "preconditioner (model='planar')"
            validation.choice(name, self.preconditioner, ("multigrid",))
            validation.choice("initial (model='planar')", self.initial or "nested", ("nested",))

    @property
    def needs_float64(self) -> bool:
        """Whether the tolerance is below the resolution of float32."""
        small_ridge = self.slope_ridge is not None and self.slope_ridge < policy.SMALL_RIDGE
        if self.planar and small_ridge:
            return True
        return not self.fixed_steps and self.tolerance < policy.FLOAT32_TOLERANCE

    @property
    def planar(self) -> bool:
        """Whether the model is planar."""
        return self.model == "planar"

    @property
    def stop_tolerance(self) -> float:
        """The error at which PCG stops; negative: never."""
        if self.fixed_steps:
            return -1.0
        return self.tolerance * policy.EXACT_TOLERANCE if self.exact else self.tolerance


# Collected here, since torch.compile cannot trace dataclasses.fields.
for _options in (GridOptions, SolveOptions):
    _options.checks = {
        option.name: option.metadata["check"]
        for option in fields(_options)
        if "check" in option.metadata
    }
