"""Corrections of depth maps: painted depths, wrong pixels and flat planes."""

from typing import Any

import numpy as np
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
    trust = np.ones(DEPTH.shape, np.float32)
    expected = refine_depth(DEPTH, PHOTO, trust)
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


def test_a_flat_region_without_depths_stays_unknown() -> None:
    unknown = np.full(DEPTH.shape, np.nan, np.float32)
    unknown[0] = 1
    flat = np.zeros(DEPTH.shape, bool)
    flat[50:60, 50:60] = True
    out = correct_depth(unknown, PHOTO, corrections(flat=flat), refine=False)
    assert np.isnan(out[50:60, 50:60]).all()
