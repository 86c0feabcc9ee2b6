"""Growth into holes on a device: rounds of kernels against the core and a plain oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

from bilateral.backends import cpu
from bilateral.backends.cuda.depth import growth as kernels
from bilateral.backends.cuda.depth.local_planes import fit_planes
from oracles import growth as oracle
from support.depth_maps import depth_maps, jumps
from support.examples import examples
from support.strategies import Array, seeds

pytestmark = pytest.mark.interpreter
# Shrinking a failing example would take the interpreter minutes.
FEW = examples(100 if COMPILED else 2, phases=[Phase.generate])
GROWTH = cpu.Growth(bias=12.0, drift=0.01, slope_reach=256.0)


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often whether all is done: rounds in which nothing happens take long, too."""
    if not COMPILED:
        monkeypatch.setattr(kernels, "LAUNCHES", 2)


def tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE)


def grown(x: Array, kept: Array, measured: Array, jump: Any, inverse: bool) -> Array:
    out = kernels.grow_surfaces(tensor(x), tensor(kept), tensor(measured), jump, inverse, GROWTH)
    return out.cpu().numpy()


def agree(found: Array, expected: Array) -> None:
    """Check that nearly all pixels are equal: rounding may turn the choice between two offers."""
    scale = max(float(np.ptp(expected)), 1e-3)
    assert np.mean(np.abs(found - expected) > 1e-4 * scale) < 0.02


@FEW
@given(depth_maps(), jumps, seeds, st.booleans())
def test_planes(z: Array, jump: Any, seed: int, inverse: bool) -> None:
    x = np.nan_to_num(z, nan=3.0)
    kept = np.random.default_rng(seed).uniform(size=x.shape) < 0.7
    at = np.flatnonzero(kept).astype(np.int32)
    found = fit_planes(tensor(x), tensor(kept), tensor(at), jump, inverse).cpu().numpy()[at]
    expected = np.stack(oracle.fit_planes(x, kept, at, jump, inverse), axis=1)
    off = np.abs(found - expected) > 1e-4 * (1 + np.abs(expected))
    assert np.count_nonzero(off) <= 0.02 * off.size  # samples at the limit of a jump


@FEW
@given(depth_maps(), jumps, seeds, st.booleans())
def test_growth(z: Array, jump: Any, seed: int, inverse: bool) -> None:
    rng = np.random.default_rng(seed)
    x = np.nan_to_num(z, nan=2.0) + rng.normal(0, 0.3, z.shape).astype(np.float32) * np.isnan(z)
    x = np.abs(x).astype(np.float32)
    kept = np.isfinite(z) & (rng.uniform(size=z.shape) < 0.8)
    expected = cpu.grow_surfaces(x, kept, z, jump, inverse, GROWTH)
    agree(oracle.grow_surfaces(x, kept, z, jump, inverse, GROWTH).x, expected)
    agree(grown(x, kept, z, jump, inverse), expected)


@pytest.mark.smoke
def test_a_hole_between_two_surfaces() -> None:
    y, u = np.mgrid[:14, :34].astype(np.float32)
    z = np.where(u < 18, 1 + 0.002 * y, 2 + 0.004 * u).astype(np.float32)
    kept = (y < 4) | (y > 10) | (u < 12) | (u > 24)
    x = np.where(kept, z, np.where(u < 20, 1.1, 1.9)).astype(np.float32)
    measured = np.where((u > 14) & (u < 17), z, np.float32(np.nan))
    jump = (0.01, 0.015, 0.0)
    expected = cpu.grow_surfaces(x, kept, measured, jump, True, GROWTH)
    np.testing.assert_allclose(grown(x, kept, measured, jump, True), expected, rtol=1e-5)


def test_nothing_to_grow() -> None:
    x = np.ones((5, 7), np.float32)
    np.testing.assert_array_equal(grown(x, x > 0, x, (0.1, 0, 0), True), x)
    np.testing.assert_array_equal(grown(x, x < 0, x, (0.1, 0, 0), True), x)
