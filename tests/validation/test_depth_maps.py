"""Maps and photographs: swapped arguments, sizes that differ, and zeros that mean unknown."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import tasks
from bilateral.validation import ZeroDepthWarning

SHAPE = (24, 32)
RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (*SHAPE, 3), np.uint8)
LARGE_PHOTO = PHOTO.repeat(2, axis=0).repeat(2, axis=1)
RAMP = np.linspace(0, 1, SHAPE[0] * SHAPE[1]).reshape(SHAPE)
HOLES = RNG.uniform(size=SHAPE) < 0.127


# Swapped arguments


@pytest.mark.parametrize("depth", [1 + RAMP, np.where(HOLES, np.nan, 1 + RAMP), np.uint16(RAMP)])
@pytest.mark.parametrize(
    ("task", "name"), [(tasks.refine_depth, "depth"), (tasks.superres_depth, "depth_lowres")]
)
def test_a_task_recognises_swapped_arguments(
    task: Callable[..., Any], name: str, depth: Any
) -> None:
    order = rf"look swapped\. The order is {task.__name__}\({name}, reference\)"
    with pytest.raises(ValueError, match=rf"^{name}: .*\(24, 32, 3\).*{order}"):
        task(PHOTO, depth)


def test_defocus_names_the_order() -> None:
    with pytest.raises(ValueError, match=r"^depth: .*the order is defocus\(image, depth\)"):
        tasks.defocus(1 + RAMP, PHOTO, 1, 1)


@pytest.mark.parametrize("depth", [3000 * RAMP, np.where(HOLES, np.nan, RAMP), -RAMP])
def test_an_error_of_solve_says_that_the_arguments_look_swapped(depth: Any) -> None:
    order = r"look swapped\. The order is solve\(reference, target\)"
    with pytest.raises(ValueError, match=rf"^reference: .*{order}"):
        bilateral.solve(depth, PHOTO)
    with pytest.raises(ValueError, match=r"^reference: ") as caught:
        bilateral.solve(depth, RAMP)
    assert "swapped" not in str(caught.value)


def test_a_16_bit_map_as_the_reference_of_a_photograph_is_a_warning() -> None:
    depth = np.uint16(3000 * RAMP)
    with pytest.warns(UserWarning, match=r"look swapped.*solve\(reference, target\)") as caught:
        bilateral.solve(depth, PHOTO)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bilateral.solve(PHOTO, depth)
        bilateral.solve(depth, RAMP)
        bilateral.solve(PHOTO[..., 0], PHOTO)


# Sizes


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((12, 16), r"superres_depth\(depth, reference\) enlarges it"),
        ((23, 31), r"superres_depth\(depth, reference\) enlarges it"),
        ((12, 32), r"different aspect ratios"),
        ((32, 24), r"different aspect ratios"),
        ((48, 64), r"Resize it"),
        ((0, 4), r"Resize it"),
    ],
)
def test_a_map_of_another_size(shape: tuple[int, int], told: str) -> None:
    with pytest.raises(ValueError, match=rf"^depth: .*{told}"):
        tasks.refine_depth(np.ones(shape), PHOTO)


# Holes


@pytest.mark.parametrize(
    ("kind", "hole", "call"),
    [
        ("depth", np.nan, r"refine_depth\(depth, image\)"),
        ("depth", 0.0, r"refine_depth\(depth, image, invalid=0\)"),
        ("disparity", np.nan, r"refine_depth\(depth, image\)"),
    ],
)
def test_defocus_names_the_task_that_fills_holes(kind: str, hole: float, call: str) -> None:
    with pytest.raises(ValueError, match=rf"^depth: .*tasks\.{call}"):
        tasks.defocus(PHOTO, np.where(HOLES, hole, 1 + RAMP), 1, 1, kind=kind)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("depth", lambda depth, **options: tasks.refine_depth(depth, PHOTO, **options)),
        (
            "depth_lowres",
            lambda depth, **options: tasks.superres_depth(depth, LARGE_PHOTO, **options),
        ),
    ],
)
def test_zeros_that_look_like_missing_data_are_a_warning(
    name: str, task: Callable[..., Any], dtype: Any
) -> None:
    depth = np.where(HOLES, 0, 40 + 160 * RAMP).astype(dtype)
    with pytest.warns(UserWarning, match=rf"^{name}: 1\d % .* are 0.*invalid=0") as caught:
        task(depth)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task(depth, invalid=0)
        task(depth, confidence=~HOLES)
        task(np.where(HOLES, 7, depth))


NEAR = 0.5 + 7.5 * RAMP
"""Depths of a room, in metres."""


@pytest.mark.parametrize(
    ("depth", "warns"),
    [
        (np.where(HOLES, 0, NEAR), True),
        (np.where(HOLES, 0, np.where(RNG.uniform(size=SHAPE) < 0.003, 0.01, NEAR)), True),
        (np.where(HOLES, 0, 60 / NEAR), True),  # disparities of a room
        (np.where(RAMP < 1e-4, 0, NEAR), True),  # 1 pixel of 768
        (RAMP, False),  # a relative map reaches 0
        (np.maximum(RAMP - 0.3, 0), False),  # a clipped one
        (np.rint(255 * np.maximum(RAMP - 0.1, 0)).astype(np.uint8), False),
        (np.where(HOLES, 0, 1 / (1 + 99 * RAMP)), False),  # disparities: 0 is infinitely far
        (np.where(HOLES, 0, 255).astype(np.uint8), False),  # a mask
        (np.floor(4 * RAMP), False),  # a map of few levels
        (np.where(HOLES, 0, -1 - RAMP), False),
        (np.zeros(SHAPE), False),
        (HOLES, False),
    ],
)
def test_which_zeros_are_suspicious(depth: Any, warns: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tasks.refine_depth(depth, PHOTO)
    assert [w.category for w in caught] == [ZeroDepthWarning] * warns


@pytest.mark.parametrize("preset", ["stereo", "sparse"])
def test_presets_whose_zeros_are_unknown_do_not_warn(preset: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks.refine_depth(np.where(HOLES, 0, 20 + NEAR), PHOTO, preset=preset)


# Channels


@pytest.mark.parametrize("channels", [4, 5, 8])
def test_other_channels_need_features(channels: int) -> None:
    guide = np.zeros((*SHAPE, channels), np.uint8)
    with pytest.raises(ValueError, match=r"^reference: .*BilateralGrid\.from_features") as caught:
        bilateral.solve(guide, RAMP)
    assert ("reference[..., :3]" in str(caught.value)) == (channels == 4)
