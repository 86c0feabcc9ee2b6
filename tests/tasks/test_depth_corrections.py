"""Corrections of depth maps: painted depths, wrong pixels and flat planes."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bilateral.cli.demo.room import room
from bilateral.tasks import refine_depth
from bilateral.tasks.depth.corrections import Corrections, correct_depth

PHOTO, DISPARITY = room((100, 150))
DEPTH = (120 / DISPARITY).astype(np.float32)


def corrections(**parts: Any) -> Corrections:
    empty = np.zeros(DEPTH.shape, bool)
    values = np.full(DEPTH.shape, np.nan, np.float32)
    return Corrections(**({"values": values, "wrong": empty, "flat": empty} | parts))


def test_without_corrections_it_is_the_task() -> None:
    assert_array_equal(correct_depth(DEPTH, PHOTO, corrections(), refine=False), DEPTH)
    expected = refine_depth(DEPTH, PHOTO)
    assert_array_equal(correct_depth(DEPTH, PHOTO, corrections()), expected)


def test_painted_depths_stay_exactly_and_fill_what_is_wrong() -> None:
    spoiled = DEPTH.copy()
    spoiled[60:90, 20:60] = 9
    wrong = np.zeros(DEPTH.shape, bool)
    wrong[58:92, 18:62] = True
    values = np.full(DEPTH.shape, np.nan, np.float32)
    values[74:76, 30:50] = DEPTH[74:76, 30:50]
    x = correct_depth(spoiled, PHOTO, corrections(wrong=wrong, values=values))
    assert_array_equal(x[74:76, 30:50], values[74:76, 30:50])
    assert np.isfinite(x).all()
    assert np.abs(x - DEPTH)[wrong].mean() < 0.05 * np.abs(spoiled - DEPTH)[wrong].mean()


def test_wrong_pixels_stay_unknown_without_refinement() -> None:
    wrong = np.zeros(DEPTH.shape, bool)
    wrong[:10] = True
    x = correct_depth(DEPTH, PHOTO, corrections(wrong=wrong), refine=False)
    assert_array_equal(np.isnan(x), wrong)


def test_a_flat_region_is_a_plane_of_the_world() -> None:
    y, x = np.mgrid[:100, :150]
    plane = (1 / (0.2 + 0.001 * x + 0.002 * y)).astype(np.float32)
    noisy = plane * (1 + 0.05 * np.random.default_rng(0).standard_normal(plane.shape))
    flat = np.zeros(plane.shape, bool)
    flat[20:60, 10:70] = flat[70:90, 100:140] = True
    out = correct_depth(noisy.astype(np.float32), PHOTO, corrections(flat=flat), refine=False)
    assert_allclose(out[flat], plane[flat], rtol=0.03)
    inverse = 1 / out[20:60, 10:70].astype(np.float64)
    assert_allclose(np.diff(inverse, 2, axis=1), 0, atol=1e-6)
    assert_array_equal(out[~flat], noisy[~flat].astype(np.float32))


def test_a_flat_region_of_disparities_is_linear() -> None:
    y, x = np.mgrid[:100, :150]
    plane = (5 + 0.1 * x + 0.2 * y).astype(np.float32)
    flat = np.zeros(plane.shape, bool)
    flat[20:60, 10:70] = True
    noisy = plane + np.random.default_rng(0).standard_normal(plane.shape).astype(np.float32)
    parts = corrections(flat=flat)
    out = correct_depth(noisy, PHOTO, parts, refine=False, disparity=True)
    assert_allclose(out[flat], plane[flat], atol=0.2)
    assert_allclose(np.diff(out[20:60, 10:70].astype(np.float64), 2, axis=1), 0, atol=1e-4)


@pytest.mark.parametrize("kind", ["values", "wrong", "flat"])
def test_a_stroke_leaves_the_rest_of_the_map(kind: str) -> None:
    depth = (2 + 0.004 * np.random.default_rng(0).standard_normal(DEPTH.shape)) * DEPTH
    part = (slice(10, 16), slice(20, 60))
    strokes = np.zeros(DEPTH.shape, bool)
    strokes[part] = True
    painted = {kind: strokes if kind != "values" else np.where(strokes, 1.3 * depth, np.nan)}
    plain = correct_depth(depth.astype(np.float32), PHOTO, corrections())
    out = correct_depth(depth.astype(np.float32), PHOTO, corrections(**painted))
    away = np.ones(DEPTH.shape, bool)
    away[:40, :90] = False
    # A pixel at an edge may go to the other side.
    assert (np.abs(out / plain - 1)[away] > 0.05).mean() < 1e-3


def test_a_flat_region_without_depths_stays_unknown() -> None:
    unknown = np.full(DEPTH.shape, np.nan, np.float32)
    unknown[0] = 1
    flat = np.zeros(DEPTH.shape, bool)
    flat[50:60, 50:60] = True
    out = correct_depth(unknown, PHOTO, corrections(flat=flat), refine=False)
    assert np.isnan(out[50:60, 50:60]).all()
