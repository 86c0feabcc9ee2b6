"""Stereo: warnings of a search range that is too small, and of exchanged views."""

import warnings
from typing import Any

import numpy as np
import pytest

from bilateral.tasks import match_blocks, stereo_depth
from support.strategies import Array


def slanted(near: int = 40, height: int = 200, width: int = 160) -> list[Array]:
    """Two views of a textured ground: disparities grow from 4 at the top to `near`."""
    rng = np.random.default_rng(0)
    dots = rng.uniform(size=(height + 4, 2 * width))
    texture = sum(dots[i : height + i] for i in range(5)) + dots[:height].round()
    texture = (texture + np.roll(texture, 1, axis=1)) / 12
    disparity = np.linspace(4, near, height).round().astype(int)
    right = np.stack([row[d : width + d] for row, d in zip(texture, disparity, strict=True)])
    return [texture[:, :width], right]


def messages(left: Array, right: Array, max_disparity: int, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        match_blocks(left, right, max_disparity, **options)
    assert all(warning.category is UserWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("consistency", [None, 1.0])
@pytest.mark.parametrize("max_disparity", [12, 20, 30])
def test_a_limit_that_is_too_low(max_disparity: int, consistency: float | None) -> None:
    [message] = messages(*slanted(), max_disparity, consistency=consistency)
    assert message.startswith("max_disparity: ")
    assert f"the limit of {max_disparity} pixels" in message
    proposed = int(message.rpartition("max_disparity=")[2].rstrip("."))
    assert max_disparity < proposed < 60


@pytest.mark.parametrize("max_disparity", [40, 41, 60, 79, 80, 159, 1000])
def test_a_limit_that_is_enough(max_disparity: int) -> None:
    assert not messages(*slanted(), max_disparity)


def test_a_plane_exactly_at_the_limit() -> None:
    dots = np.random.default_rng(0).uniform(size=(60, 200))
    assert not messages(dots[:, :160], dots[:, 16:176], 16)


@pytest.mark.parametrize("max_disparity", [8, 40, 70])
@pytest.mark.parametrize("kind", ["noise", "unrelated", "flat", "same"])
def test_views_without_the_problem(kind: str, max_disparity: int) -> None:
    left, right = slanted()
    right = {
        "noise": np.random.default_rng(5).uniform(size=left.shape),
        "unrelated": right[::-1],
        "flat": np.full(left.shape, 0.5),
        "same": left,
    }[kind]
    assert not messages(left, right, max_disparity)


@pytest.mark.parametrize("max_disparity", [45, 70])
def test_exchanged_views(max_disparity: int) -> None:
    left, right = slanted()
    [message] = messages(right, left, max_disparity)
    assert message.startswith("left, right: ")
    assert "swapped?" in message


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (9, 9)])
def test_small_views(shape: tuple[int, int]) -> None:
    left, right = np.random.default_rng(0).uniform(size=(2, *shape))
    assert not messages(left, right, 3)


def test_the_warning_of_stereo_depth_points_at_its_caller() -> None:
    with pytest.warns(UserWarning, match="max_disparity=") as caught:
        stereo_depth(*slanted(), 20, iterations=1)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.stress
def test_a_photographed_scene() -> None:
    data = pytest.importorskip("skimage.data", reason="the scene is scikit-image's")
    left, right, _ = data.stereo_motorcycle()  # disparities up to 62
    for max_disparity in (12, 25, 37, 49):
        [message] = messages(left, right, max_disparity)
        assert "max_disparity=" in message
    for max_disparity in (63, 75, 124):
        assert not messages(left, right, max_disparity)
        [message] = messages(right, left, max_disparity)
        assert "swapped?" in message
    assert not messages(left, right[::-1], 70)
