"""Shadows of a depth camera's projector are recognised and filled from the surface behind."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bilateral.tasks.depth.shadows import behind_shadows
from support.examples import examples
from support.strategies import seeds

Array = NDArray[Any]

SHAPE = (160, 240)


def jump_at(z: Array) -> Array:
    return np.asarray(0.01 + 0.015 * z)


def boxes(rng: np.random.Generator) -> Array:
    """Depths of boxes in front of a wall, each in rows of its own."""
    z = np.full(SHAPE, 4.0, np.float32)
    depths = rng.permutation(np.linspace(1, 2.4, 5))
    for top, depth in zip(range(5, 150, 30), depths, strict=True):
        left, width = rng.integers(60, 90), rng.integers(20, 60)
        z[top : top + 25, left : left + width] = depth
    return z


def shadow(z: Array, baseline: float) -> Array:
    """Mark what a projector does not light; a negative baseline: it stands on the other side."""
    if baseline < 0:
        return np.asarray(shadow(z[:, ::-1], -baseline)[:, ::-1])
    lit = np.arange(z.shape[1]) + baseline / z
    return np.asarray(lit < np.maximum.accumulate(lit, axis=1) - 1e-3)


def spoiled(z: Array, holes: Array, rng: np.random.Generator) -> Array:
    noisy = z + rng.normal(size=z.shape) * 0.002 * z
    return np.where(holes, np.nan, noisy).astype(np.float32)


@examples(30)
@given(st.floats(25, 60), st.booleans(), seeds)
def test_shadows_show_the_surface_behind(baseline: float, mirrored: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = boxes(rng)
    holes = shadow(z, -baseline if mirrored else baseline)
    measured = spoiled(z, holes, rng)
    nearest = z.min()
    found = behind_shadows(np.where(holes, nearest, measured), ~holes, measured, jump_at)
    np.testing.assert_array_equal(found[~holes], measured[~holes])
    assert np.abs(found - 4)[holes].max() < 0.05


@examples(30)
@given(seeds)
def test_other_holes_stay_as_they_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = boxes(rng)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    z = z + np.float32(0.01) * x.astype(np.float32)  # slanted
    holes = np.zeros(SHAPE, np.bool_)
    for _ in range(15):
        centre, radii = rng.uniform(0, 1, 2) * SHAPE, rng.uniform(4, 20, 2)
        holes |= ((y - centre[0]) / radii[0]) ** 2 + ((x - centre[1]) / radii[1]) ** 2 < 1
    measured = spoiled(z, holes, rng)
    filling = np.where(holes, np.float32(1.5), measured)
    assert behind_shadows(filling, ~holes, measured, jump_at) is filling


@pytest.mark.parametrize("side", [-1, 1])
def test_a_hole_in_the_near_surface_stays_near(side: int) -> None:
    rng = np.random.default_rng(0)
    z = boxes(rng)
    holes = shadow(z, 40.0)
    beside = np.zeros_like(holes)  # a hole of the box that touches its shadow
    row = 10
    edge = int(np.flatnonzero(z[row] < 3.5)[-1])
    beside[row : row + 4, edge - 14 : edge + 1] = True
    holes |= beside
    z, holes, beside = (part[:, ::side] for part in (z, holes, beside))
    measured = spoiled(z, holes, rng)
    filling = np.where(holes, z.min(), measured)
    found = behind_shadows(filling, ~holes, measured, jump_at)
    assert np.mean(found[holes & ~beside] > 3.5) > 0.8
    assert np.mean(found[beside] == z.min()) > 0.7


def test_maps_without_holes() -> None:
    z = boxes(np.random.default_rng(0))
    assert behind_shadows(z, np.ones(SHAPE, np.bool_), z, jump_at) is z
    nothing = np.full(SHAPE, np.nan, np.float32)
    assert behind_shadows(z, np.zeros(SHAPE, np.bool_), nothing, jump_at) is z
