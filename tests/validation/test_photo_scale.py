"""A floating-point photograph whose values contradict a white of 1 is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver, confidence, tasks

PHOTO = np.random.default_rng(0).uniform(size=(8, 12, 3))
PHOTO[0, 0] = 1
MAP = np.random.default_rng(1).uniform(1, 2, (8, 12))
MARKED = np.uint8(np.clip(PHOTO, 0, 1) * 255)


def update(photo: Any, **options: Any) -> None:
    BilateralSolver(BilateralGrid(PHOTO, **options)).update(photo)


# argument, call with a photograph and, perhaps, reference_max
CALLS: list[tuple[str, Callable[..., Any]]] = [
    ("reference", lambda photo, **o: bilateral.solve(photo, MAP, **o)),
    ("reference", BilateralGrid),
    ("reference", update),
    ("reference", lambda photo, **o: bilateral.domain_transform(MAP, photo, 3, 3, **o)),
    ("reference", lambda photo, **o: bilateral.polish(MAP, photo, scale=1, **o)),
    ("reference", lambda photo, **o: confidence.edge_aware_variance(MAP, photo, **o)),
    ("reference", lambda photo, **o: tasks.refine_depth(MAP, photo, **o)),
    ("reference", lambda photo, **o: tasks.superres_depth(MAP[::2, ::2], photo, **o)),
    ("image", lambda photo, **o: tasks.refine_segmentation(MAP > 1.5, photo, **o)),
    ("left", lambda photo, **o: tasks.stereo_depth(photo, photo, 2, **o)),
    ("gray", lambda photo, **o: tasks.colorize(photo, MARKED, MAP > 1.5, **o)),
    ("gray", lambda photo, **o: tasks.Colorizer(photo, **o)),
    ("photo", lambda photo, **o: tasks.cut_out(photo, mask=MAP > 1.5, **o)),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("argument", "call"), CALLS)
def test_a_photograph_up_to_255_is_refused(
    argument: str, call: Callable[..., Any], dtype: Any
) -> None:
    photo = (255 * PHOTO).astype(dtype)
    message = rf"^{argument}: .* up to 255\. Divide it by 255, or give reference_max=255, or "
    with pytest.raises(ValueError, match=message):
        call(photo)
    call(photo, reference_max=255)
    call(photo, reference_max=1.0)
    call(PHOTO.astype(dtype))


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0, 1.6, r"up to 1\.6\. Divide it by its white, or give reference_max=1\.0"),
        (0, 260, r"up to 260\. Divide it by 255, or give reference_max=255"),
        (-9, 262, r"up to 262\. Divide it by 255, or give reference_max=255"),
        (0, 1023, r"up to 1023\. Divide it by 1023"),
        (0, 65535, r"up to 65535\. Divide it by 65535"),
        (0, 1e6, r"up to 1e\+06\. Divide it by 1e\+06"),
        (-2.1, 2.6, r"down to -2\.1\. Undo the normalization of a network, or give reference_max"),
        (-1, 1, r"down to -1\. Undo"),
        (-0.6, 0.5, r"down to -0\.6\. Undo"),
    ],
)
def test_the_message_says_what_to_do(low: float, high: float, told: str) -> None:
    with pytest.raises(ValueError, match=rf"^reference: .* from 0 to 1, got values {told}"):
        bilateral.solve(low + (high - low) * np.linspace(0, 1, 96).reshape(8, 12), MAP)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.4, 1.4), (0.9, 1.1), (0, 0)])
def test_overshoot_of_resampling_is_accepted(low: float, high: float) -> None:
    photo = np.linspace(low, high, 96).reshape(8, 12)
    np.testing.assert_array_equal(
        bilateral.solve(photo, MAP), bilateral.solve(photo, MAP, reference_max=1.0)
    )


def test_strokes_share_the_rule() -> None:
    gray, mask = MARKED[..., 0], MAP > 1.5
    with pytest.raises(ValueError, match=r"^scribbles: .* up to 255\. Divide it by 255\.$"):
        tasks.colorize(gray, MARKED.astype(np.float32), mask)
    strokes = np.where(mask[..., np.newaxis], MARKED / 255, np.nan)
    tasks.colorize(gray, strokes, mask)


def test_linear_light_and_census_have_no_white() -> None:
    bright = 30 * PHOTO
    assert tasks.defocus(bright, MAP, focus=1, aperture=2).max() > 5
    tasks.match_blocks(bright, bright, 2)
