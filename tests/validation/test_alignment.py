"""Arrays at odd addresses: every array that reaches the core is aligned."""

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver, tasks
from bilateral.backends import cpu
from bilateral.filters.block_means import BlockMeans
from support.layouts import unaligned

rng = np.random.default_rng(0)
PHOTO = rng.uniform(size=(24, 30, 3)).astype(np.float32)
PIXELS = rng.uniform(1, 2, size=(24, 30)).astype(np.float32)
WIDE = rng.uniform(1, 2, size=(24, 30)).astype(np.float64)
LOW = rng.uniform(1, 2, size=(6, 10)).astype(np.float32)


def solver() -> BilateralSolver:
    return BilateralSolver(BilateralGrid(unaligned(PHOTO), sigma_xy=4))


def vertices() -> Any:
    return unaligned(np.ones(BilateralGrid(PHOTO, sigma_xy=4).n_vertices, np.float32))


def packed_field() -> Any:
    """One field of packed records, whose numbers lie at odd addresses and are contiguous."""
    records = np.zeros(1, np.dtype([("mark", np.uint8), ("depth", np.float32, PIXELS.shape)]))
    records["depth"] = PIXELS
    return records["depth"][0]


CALLS: dict[str, Callable[[], Any]] = {
    "solve": lambda: solver().solve(unaligned(PIXELS), unaligned(PIXELS)),
    "solve float64": lambda: solver().solve(unaligned(WIDE), unaligned(WIDE)),
    "solve records": lambda: solver().solve(packed_field()),
    "warm start": lambda: solver().solve(unaligned(PIXELS), warm_start=unaligned(PIXELS)),
    "robust": lambda: solver().solve_robust(unaligned(PIXELS), iterations=2),
    "uint16 reference": lambda: BilateralGrid(unaligned((PHOTO * 60000).astype(np.uint16)), 4),
    "features": lambda: BilateralGrid.from_features(unaligned(PHOTO), 0.2, 4),
    "splat": lambda: solver().grid.splat(unaligned(PIXELS)),
    "slice": lambda: solver().grid.slice(vertices()),
    "blur": lambda: solver().grid.blur(vertices()),
    "domain transform": lambda: bilateral.domain_transform(
        unaligned(PIXELS), unaligned(PHOTO), 4, 9, weights=unaligned(PIXELS)
    ),
    "median": lambda: bilateral.median(unaligned(PIXELS)),
    "block means": lambda: BlockMeans(unaligned(LOW), (24, 30)).back_project(unaligned(PIXELS)),
    "depth": lambda: tasks.refine_depth(unaligned(PIXELS), unaligned(PHOTO)),
    "superres": lambda: tasks.superres_depth(unaligned(LOW), unaligned(PHOTO)),
    "stereo": lambda: tasks.stereo_depth(unaligned(PHOTO), unaligned(PHOTO), max_disparity=4),
    "defocus": lambda: tasks.defocus(unaligned(PHOTO), unaligned(PIXELS), 1.5, 10),
    "segmentation": lambda: tasks.refine_segmentation(unaligned(LOW - 1), unaligned(PHOTO)),
}


@pytest.fixture
def arrays_of_the_core(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray[Any, Any]]:
    """Collect every array that the package gives to the core."""
    arrays: list[np.ndarray[Any, Any]] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            values = (*args, *kwargs.values())
            arrays.extend(value for value in values if isinstance(value, np.ndarray))
            return function(*args, **kwargs)

        return call

    for name in cpu.__all__:
        function = getattr(cpu, name)
        if isinstance(function, types.FunctionType):
            monkeypatch.setattr(cpu, name, watched(function))
    return arrays


def all_aligned(arrays: list[np.ndarray[Any, Any]]) -> bool:
    return len(arrays) > 0 and all(array.flags.aligned for array in arrays)


@pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")
@pytest.mark.parametrize("name", CALLS)
def test_arrays_are_aligned_in_the_core(
    name: str, arrays_of_the_core: list[np.ndarray[Any, Any]]
) -> None:
    assert not unaligned(PIXELS).flags.aligned
    assert not packed_field().flags.aligned
    CALLS[name]()
    assert all_aligned(arrays_of_the_core)


def test_tensors_are_aligned_in_the_core(
    arrays_of_the_core: list[np.ndarray[Any, Any]],
) -> None:
    torch, layer = pytest.importorskip("torch"), pytest.importorskip("bilateral.torch")

    def odd(values: np.ndarray[Any, Any]) -> Any:
        return torch.from_numpy(unaligned(np.ascontiguousarray(values)))

    photo, pixels = odd(np.moveaxis(PHOTO, -1, 0)), odd(PIXELS[np.newaxis])
    target, confidence = pixels.requires_grad_(), odd(PIXELS[np.newaxis]).requires_grad_()
    solution = layer.solve(photo, target, confidence, sigma_xy=4)
    solution.backward(odd(PIXELS[np.newaxis]))
    layer.domain_transform(pixels, photo, 4, 9)
    assert all_aligned(arrays_of_the_core)
