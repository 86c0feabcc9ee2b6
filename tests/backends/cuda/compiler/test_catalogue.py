"""The list of kernels that are compiled ahead of time fits the kernels, and serves usual calls."""

import inspect

import numpy as np
import pytest

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

from bilateral.backends.cuda import kernel
from bilateral.backends.cuda.compiler.catalogue import catalogue
from bilateral.backends.cuda.compiler.variant import Variant
from bilateral.torch.cuda.solve import Inputs, solve
from support.layers import layer_options

_OPTIONS = {"num_warps", "maxnreg"}


def test_entries_name_kernels_and_fit_their_parameters():
    entries = catalogue()
    assert len(entries) == len(set(entries)) > 0
    for entry in entries:
        parameters = inspect.signature(entry.load().function.fn).parameters
        assert len(parameters) == len(entry.kinds), entry
        for name, parameter, kind in zip(parameters, parameters.values(), entry.kinds, strict=True):
            is_constant = "constexpr" in str(parameter.annotation)
            assert not (is_constant and isinstance(kind, str)), (entry, name)
            known = isinstance(kind, str) or is_constant or kind in ((None,), (1,))
            assert known, (entry, name)
        assert {name for name, _ in entry.options} <= _OPTIONS
        assert Variant.from_json(entry.to_json()) == entry


@pytest.mark.interpreter
@pytest.mark.skipif(COMPILED, reason="`make catalogue` writes the list there")
@pytest.mark.parametrize(
    ("images", "channels", "sparse"),
    [
        pytest.param(1, 1, False, marks=pytest.mark.smoke),
        (1, 1, True),
        (3, 3, True),
    ],
)
def test_usual_calls_need_no_kernels_beyond_the_list(monkeypatch, images, channels, sparse):
    recorded: dict[Variant, None] = {}
    monkeypatch.setattr(kernel, "recorded", recorded)
    rng = np.random.default_rng(0)
    reference = (rng.integers(0, 6, (images, 3, 9, 14)) * 45).astype(np.uint8)
    pixels = images * 9 * 14
    values = rng.normal(size=(pixels, channels)).astype(np.float32)
    weights = (rng.random((pixels, 1)) < 0.1).astype(np.float32) if sparse else None
    tensors = [None if x is None else torch.from_numpy(x).to(DEVICE) for x in (values, weights)]
    options = layer_options((1.5, 40.0, 40.0), 1e-3, 100, "multigrid")
    solve(Inputs(torch.from_numpy(reference).to(DEVICE), *tensors, 4.0), options)
    missing = [variant.to_json() for variant in recorded if variant not in catalogue()]
    assert recorded
    assert not missing, "run `make catalogue` on a machine with a GPU"
