"""Colours of both surfaces beside jumps on a device against those of the snap for arrays."""

from typing import Any

import numpy as np
import pytest

from support.kernel_device import DEVICE

# isort: split
import torch

from bilateral import validation
from bilateral.tasks.depth import snap
from bilateral.tasks.depth.fill import PlaneUnit
from bilateral.tasks.depth.noise import estimate_noise
from bilateral.tasks.depth.surfaces import find_surfaces
from bilateral.torch.cuda.tasks import camera
from support.strategies import Array

pytestmark = pytest.mark.interpreter


def edges(ragged: bool, gray: bool) -> tuple[Array, Array]:
    """Two surfaces of different colours, whose edge is straight or ragged in the map."""
    rng = np.random.default_rng(1)
    x = np.tile(np.arange(30), (22, 1))
    places = 15 + (rng.integers(-2, 3, 22) if ragged else np.zeros(22, int))
    z = np.where(x < places[:, np.newaxis], 1.0, 2.0) + rng.normal(0, 1e-3, x.shape)
    colours = np.array([[40, 60, 90], [200, 180, 120]])[(x >= 15).astype(int)]
    photo = np.clip(colours + rng.normal(0, 4, colours.shape), 0, 255).astype(np.uint8)
    return (photo[..., :1] if gray else photo), z.astype(np.float32)


@pytest.mark.parametrize(
    ("ragged", "gray"), [pytest.param(True, False, marks=pytest.mark.smoke), (False, True)]
)
def test_against_the_snap_for_arrays(
    ragged: bool, gray: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo, z = edges(ragged, gray)
    surfaces = find_surfaces(z, estimate_noise(z))
    unit = PlaneUnit.of(z, surfaces.kept)
    made: list[Any] = []
    decide = snap.is_ragged
    monkeypatch.setattr(snap, "is_ragged", lambda *args: made.append(args) or decide(*args))
    _, moved = snap.snap_edges(z, surfaces, validation.reference(photo, None), unit)
    image, *parts = (
        torch.from_numpy(np.ascontiguousarray(part)).to(DEVICE)
        for part in (np.moveaxis(photo, -1, 0), z, *surfaces[:4])
    )
    there = camera.DeviceSurfaces(*parts[1:], surfaces.jump, unit, False)
    found = camera._is_ragged(parts[0], there, image, None)
    (pixels, moving, total, squares), (*numbers, total_there, squares_there) = made
    assert numbers == [pixels, moving]
    np.testing.assert_allclose(total_there, total, atol=1e-3)
    np.testing.assert_allclose(squares_there, squares, rtol=1e-4, atol=1e-3)
    assert found == decide(pixels, moving, total, squares)
    assert found or not moved.any()
    assert pixels > 20
