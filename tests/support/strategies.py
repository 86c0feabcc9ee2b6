"""Hypothesis strategies: references, targets, confidences, options, whole problems.

Hypothesis draws sizes, kinds and a seed; NumPy fills the arrays from the seed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import bilateral
from oracles import reference as oracle

Array = npt.NDArray[Any]

BLURS = ("paper", "uniform", (3.0, 0.5, 0.25), (2.0, 1.0, 0.0), (2.0, 0.0, 1.0), (1.5, 0.7, 1.3))
WHITE = {"uint8": 255, "uint16": 65535, "float32": 1, "float64": 1}
PICTURES = ("flat", "two-tone", "ramp", "textured")
CONFIDENCES = ("none", "dense", "sparse", "zero in parts", "many magnitudes")

seeds = st.integers(0, 2**32 - 1)
sigmas = st.sampled_from([1.0, 2.0, 4.0, 8.0, 16.0]) | st.floats(0.4, 30)
smoothnesses = st.sampled_from([0.1, 1.0, 4.0, 100.0]) | st.floats(0.1, 100)


def shapes(largest: int = 40) -> st.SearchStrategy[tuple[int, int]]:
    """Height and width, from a single pixel on; every third is one row or one column."""
    side, one = st.integers(1, largest), st.just(1)
    return (
        st.tuples(side, side) | st.tuples(side, side) | st.tuples(one, side) | st.tuples(side, one)
    )


def picture(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values in 0..1, (H, W) or (H, W, C), of one of `PICTURES`."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    if kind == "textured":
        return rng.uniform(size=shape)
    if kind == "flat":
        side = np.zeros(x.shape)
    elif kind == "two-tone":
        side = (y - shape[0] / 2 > rng.normal() * (x - shape[1] / 2)).astype(float)
    else:
        side = (x * rng.uniform() + y * rng.uniform() + rng.normal(size=x.shape)) / sum(shape)
    low, high = rng.uniform(size=(2, *shape[2:]))
    return np.clip(low + (high - low) * side.reshape(*x.shape, *[1] * (len(shape) - 2)), 0, 1)


def as_dtype(values: Array, dtype: str) -> Array:
    """Turn values in 0..1 into a reference of a dtype's usual range."""
    if dtype.startswith("uint"):
        values = np.rint(values * WHITE[dtype])
    return values.astype(dtype)


def white(reference: Array) -> float:
    """The `reference_max` that is the default of a dtype, and believed for any values."""
    return WHITE[reference.dtype.name]


@st.composite
def references(draw: st.DrawFn, largest: int = 40, dtypes: tuple[str, ...] = tuple(WHITE)) -> Array:
    """Gray (H, W) or (H, W, 1), or RGB; floating-point ones sometimes leave 0..1."""
    channels: tuple[int, ...] = draw(st.sampled_from([(), (1,), (3,)]))
    shape = draw(shapes(largest)) + channels
    dtype = draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(draw(seeds))
    values = picture(draw(st.sampled_from(PICTURES)), shape, rng)
    if dtype.startswith("float") and draw(st.booleans()):
        values = values * rng.uniform(0.1, 5) - rng.uniform(0, 2)
    return as_dtype(values, dtype)


@st.composite
def grid_options(draw: st.DrawFn) -> dict[str, Any]:
    """Sigmas and blur."""
    return {
        "sigma_xy": draw(sigmas),
        "sigma_luma": draw(sigmas),
        "sigma_chroma": draw(sigmas),
        "blur": draw(st.sampled_from(BLURS)),
    }


def weights(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Array | None:
    """Draw a confidence of one of `CONFIDENCES`, (H, W)."""
    if kind == "none":
        return None
    dense = rng.uniform(0.1, 2, shape)
    if kind == "sparse":
        dense[rng.uniform(size=shape) > 0.05] = 0
    elif kind == "zero in parts":
        dense[:, : shape[1] // 2] = 0
        dense[: shape[0] // 3] = 0
    elif kind == "many magnitudes":
        dense = 10 ** rng.uniform(-6, 6, shape)
    return dense


@dataclass(frozen=True)
class Problem:
    """Arguments of `bilateral.solve` in float64."""

    reference: Array
    target: Array
    confidence: Array | None
    smoothness: float
    options: dict[str, Any]

    @property
    def known(self) -> Array:
        """Mark the pixels with data, (H, W)."""
        seen = np.isfinite(self.target).reshape(*self.target.shape[:2], -1).all(axis=2)
        return seen if self.confidence is None else seen & (self.confidence > 0)

    @property
    def size(self) -> float:
        """The largest known value: the unit of differences."""
        return float(np.abs(self.target[self.known]).max()) or 1.0

    def solve(self, **options: Any) -> Any:
        """Call `bilateral.solve`; `target` and `confidence` may be replaced."""
        given = {
            "target": self.target,
            "confidence": self.confidence,
            "smoothness": self.smoothness,
            "reference_max": white(self.reference),
            **self.options,
        }
        return bilateral.solve(self.reference, **(given | options))

    def grid(self) -> bilateral.BilateralGrid:
        """Build the grid."""
        return bilateral.BilateralGrid(
            self.reference, **self.options, reference_max=white(self.reference)
        )

    def exact(self) -> Array:
        """Return the oracle's solution."""
        given = self.target, self.confidence
        return oracle.solve(self.reference, *given, smoothness=self.smoothness, **self.options)

    def paper(self, **options: Any) -> Array:
        """Return the result of the oracle's PCG, in the range of the known values after a step."""
        x = oracle.solve_paper(
            self.reference,
            self.target,
            self.confidence,
            smoothness=self.smoothness,
            **self.options,
            **options,
        )
        known = self.target[self.known]
        return x if options.get("steps") == 0 else np.clip(x, known.min(axis=0), known.max(axis=0))


@st.composite
def problems(draw: st.DrawFn, largest: int = 24, stiff: bool = True) -> Problem:
    """A problem with at least one known pixel.

    Stiff problems have confidences down to 1e-6 of the smoothness and below: the solution is
    well defined, but rounding errors decide the result of a fixed number of steps.
    """
    image = draw(references(largest))
    shape = image.shape[:2]
    rng = np.random.default_rng(draw(seeds))
    channels: tuple[int, ...] = draw(st.sampled_from([(), (), (1,), (2,), (3,), (9,)]))
    target = rng.normal(rng.normal(), 1, shape + channels) * 10 ** rng.uniform(-3, 3)
    if draw(st.booleans()):
        holes = rng.uniform(size=target.shape) < rng.uniform(0, 0.5)
        target[holes] = rng.choice([np.nan, np.inf, -np.inf], int(holes.sum()))
    kind = draw(st.sampled_from(CONFIDENCES if stiff else CONFIDENCES[:-1]))
    confidence = weights(kind, shape, rng)
    if confidence is not None and stiff and kind != "many magnitudes":
        confidence *= draw(st.sampled_from([1.0, 1e-6, 1e6]))
    seen = int(rng.integers(shape[0])), int(rng.integers(shape[1]))
    target[seen] = rng.normal(size=channels)
    if confidence is not None:
        confidence[seen] = confidence.max() or 1.0
    return Problem(image, target, confidence, draw(smoothnesses), draw(grid_options()))
