"""Kernels of depth maps on a device against those of the core."""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

from bilateral.backends import cpu
from bilateral.backends.cuda.depth.doubt import find_doubt
from bilateral.backends.cuda.depth.surface_sizes import surface_sizes
from support.depth_maps import depth_maps, jumps
from support.examples import examples
from support.strategies import Array, seeds

pytestmark = pytest.mark.interpreter
# Shrinking a failing example would take the interpreter minutes.
FEW = examples(100 if COMPILED else 6, phases=[Phase.generate])


def tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE)


@FEW
@given(depth_maps(), jumps)
def test_doubt(z: Array, jump: Any) -> None:
    found = find_doubt(tensor(z), jump).cpu().numpy()
    np.testing.assert_array_equal(found, cpu.find_doubt(z, jump))


@FEW
@given(depth_maps(), jumps, seeds, st.booleans())
def test_surface_sizes(z: Array, jump: Any, seed: int, random: bool) -> None:
    doubt = cpu.find_doubt(z, jump)
    if random:
        doubt = np.random.default_rng(seed).uniform(size=z.shape) < 0.2
    found = surface_sizes(tensor(z), tensor(doubt), jump).cpu().numpy()
    np.testing.assert_array_equal(found, cpu.surface_sizes(z, doubt, jump))


@pytest.mark.smoke
def test_a_wide_map() -> None:
    rng = np.random.default_rng(4)
    z = np.where(np.arange(700) % 97 < 60, 1.0, 2.0) + rng.normal(0, 1e-3, (9, 700))
    z[:, ::41] = rng.uniform(1, 2, z[:, ::41].shape)
    z[3, 100:160] = np.nan
    z, jump = z.astype(np.float32), (0.01, 0.015, 0.0)
    doubt = cpu.find_doubt(z, jump)
    np.testing.assert_array_equal(find_doubt(tensor(z), jump).cpu().numpy(), doubt)
    found = surface_sizes(tensor(z), tensor(doubt), jump).cpu().numpy()
    np.testing.assert_array_equal(found, cpu.surface_sizes(z, doubt, jump))
