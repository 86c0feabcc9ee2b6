"""Integers: every result is exact, or the input is refused; conversions round and clip."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver, confidence, tasks

PHOTO = np.random.default_rng(0).integers(0, 256, (8, 12, 3), np.uint8)
LARGE_PHOTO = PHOTO.repeat(2, axis=0).repeat(2, axis=1)
ONES = np.ones((8, 12))


def vertices(of: Callable[[BilateralGrid, Any], Any], values: Any) -> Any:
    """Apply a method of a grid to values of its vertices."""
    grid = BilateralGrid(PHOTO)
    return of(grid, np.resize(values, grid.n_vertices))


# argument, call with a map of integers
CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("target", lambda m: bilateral.solve(PHOTO, m)),
    ("confidence", lambda m: bilateral.solve(PHOTO, ONES, m)),
    ("warm_start", lambda m: bilateral.solve(PHOTO, ONES, warm_start=m)),
    ("target", lambda m: BilateralSolver(BilateralGrid(PHOTO)).solve_robust(m)),
    ("confidence", lambda m: BilateralSolver(BilateralGrid(PHOTO)).variance(m)),
    ("pixels", lambda m: BilateralGrid(PHOTO).splat(m)),
    ("vertices", lambda m: vertices(BilateralGrid.slice, m)),
    ("vertices", lambda m: vertices(BilateralGrid.blur, m)),
    ("features", lambda m: BilateralGrid.from_features(m, 1, 8)),
    ("image", lambda m: bilateral.domain_transform(m, PHOTO, 3, 3)),
    ("weights", lambda m: bilateral.domain_transform(ONES, PHOTO, 3, 3, weights=m)),
    ("image", bilateral.median),
    ("image", lambda m: bilateral.polish(m, PHOTO, scale=1)),
    ("target", lambda m: bilateral.polish(ONES, PHOTO, m, scale=1)),
    ("weights", lambda m: bilateral.polish(ONES, PHOTO, ONES, m, scale=1)),
    ("low", lambda m: bilateral.BlockMeans(m, (16, 24))),
    ("depth", lambda m: tasks.refine_depth(m, PHOTO)),
    ("confidence", lambda m: tasks.refine_depth(ONES, PHOTO, m)),
    ("depth_lowres", lambda m: tasks.superres_depth(m, LARGE_PHOTO)),
    ("depth", lambda m: tasks.defocus(PHOTO, m, 1, 1)),
    ("probabilities", lambda m: tasks.refine_segmentation(m, PHOTO, logits=True)),
    ("target", lambda m: confidence.edge_aware_variance(m, PHOTO)),
    ("lower", lambda m: confidence.from_interval(m, m)),
    ("left", lambda m: confidence.left_right_consistency(m, m)),
]


@pytest.mark.parametrize("value", [np.uint64(2**64 - 1), np.int64(-(2**53) - 1)])
@pytest.mark.parametrize(("argument", "call"), CALLS)
def test_integers_that_float64_would_round_are_refused(
    argument: str, call: Callable[[Any], Any], value: Any
) -> None:
    values = np.full((8, 12), value)
    values[2, 3] = 7
    with pytest.raises(ValueError, match=rf"^{argument}: .*2\*\*53.*{int(value)}.* offset"):
        call(values)


def test_masks_may_have_any_integers() -> None:
    mask = np.where(ONES > 0, np.uint64(2**64 - 1), np.uint64(0))
    mask[2, 3] = 0
    found = tasks.refine_depth(PHOTO[..., 0], PHOTO, mask=mask)
    np.testing.assert_array_equal(found, tasks.refine_depth(PHOTO[..., 0], PHOTO, mask=mask > 0))


@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("wanted", [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_results_are_clipped_to_the_limits_of_their_dtype(wanted: Any, given: Any) -> None:
    limits = np.iinfo(wanted)
    for value, expected in ((1e30, limits.max), (-1e30, limits.min)):
        target = np.full((8, 12), value, given)
        for found in (
            bilateral.solve(PHOTO, target, dtype=wanted),
            bilateral.domain_transform(target, PHOTO, 3, 3, dtype=wanted),
            tasks.refine_depth(target, PHOTO, dtype=wanted),
        ):
            assert found.dtype == wanted
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("wanted", [np.int32, np.uint32, np.int64, np.uint64])
def test_conversions_next_to_the_limits(wanted: Any, values: Any) -> None:
    from bilateral.validation import as_dtype

    limits = np.iinfo(wanted)
    next_to_max = np.nextafter(values(limits.max), values(0))
    numbers = np.array([next_to_max, limits.max, np.inf, limits.min, -np.inf], values)
    expected = [min(round(float(next_to_max)), limits.max), *[limits.max] * 2, *[limits.min] * 2]
    assert as_dtype(numbers, np.dtype(wanted)).tolist() == expected
