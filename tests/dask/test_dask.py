"""Dask arrays of any chunking give the bits of the call in memory, with every local scheduler."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bilateral
import bilateral.dask
from bilateral.numerics import blocks
from support.block_chunks import chunks, outcome, same_bits
from support.strategies import Problem, problems, references, seeds, white

Array = npt.NDArray[Any]


def compute(x: Any) -> Any:
    return x.compute(scheduler="synchronous")


def as_dask(data: st.DataObject, array: Array | None) -> Any:
    if array is None:
        return None
    cut = data.draw(chunks(array.shape, least=5))
    return da.from_array(array, chunks=(*map(tuple, cut), *((n,) for n in array.shape[2:])))


@settings(max_examples=15)
@given(st.data(), problems(30), st.sampled_from(["float32", "float64", "uint16"]))
def test_solve_has_the_bits_of_the_call_in_memory(
    data: st.DataObject, problem: Problem, dtype: str
) -> None:
    target = problem.target
    if dtype == "uint16":
        target = np.clip(np.nan_to_num(target, posinf=0, neginf=0), 0, 999)
    target = target.astype(dtype)
    options = problem.options | {
        "smoothness": problem.smoothness,
        "reference_max": white(problem.reference),
        "smooth": data.draw(st.none() | st.just((3.0, 20.0))),
    }
    start = data.draw(st.none() | st.just(np.linspace(-3, 9, target.size).reshape(target.shape)))
    given = [as_dask(data, part) for part in (problem.reference, target, problem.confidence)]
    expected = outcome(
        lambda: bilateral.solve(
            problem.reference, target, problem.confidence, warm_start=start, **options
        )
    )
    lazy_start = as_dask(data, start)
    actual = outcome(
        lambda: compute(bilateral.dask.solve(*given, warm_start=lazy_start, **options))
    )
    if isinstance(actual, str) and "in blocks" in actual:
        return
    if isinstance(expected, str) or isinstance(actual, str):
        assert type(expected) is type(actual)
        return
    assert same_bits(expected, actual)


@settings(max_examples=8)
@given(st.data(), problems(24, stiff=False), st.sampled_from(["joint", "channel"]))
def test_robust_solve_has_the_bits_of_the_call_in_memory(
    data: st.DataObject, problem: Problem, weights: str
) -> None:
    target = problem.target.astype(np.float32)
    options = problem.options | {"reference_max": white(problem.reference)}
    loss, rounds = bilateral.Cauchy(0.5), data.draw(st.integers(1, 3))
    given = [as_dask(data, part) for part in (problem.reference, target, problem.confidence)]

    def in_memory() -> Any:
        grid = bilateral.BilateralGrid(problem.reference, **options)
        solver = bilateral.BilateralSolver(grid, problem.smoothness)
        return solver.solve_robust(target, problem.confidence, loss, rounds, weights=weights)

    def lazily() -> Any:
        return compute(
            bilateral.dask.solve_robust(
                *given, loss, rounds, weights=weights, smoothness=problem.smoothness, **options
            )
        )

    expected, actual = outcome(in_memory), outcome(lazily)
    if isinstance(actual, str) and "in blocks" in actual:
        return
    if isinstance(expected, str) or isinstance(actual, str):
        assert type(expected) is type(actual)
        return
    assert same_bits(expected, actual)


@settings(max_examples=20)
@given(
    st.data(),
    references(150),
    st.sampled_from(["float32", "float64", "uint8", "uint16"]),
    st.sampled_from([0, 1, 3, 5]),
    seeds,
)
def test_domain_transform_has_the_bits_of_the_call_in_memory(
    data: st.DataObject, reference: Array, dtype: str, channels: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = reference.shape[:2] + ((channels,) if channels else ())
    image = rng.uniform(0, 200, shape).astype(dtype)
    if dtype.startswith("float"):
        if data.draw(st.booleans()):
            image[rng.uniform(size=shape) < 0.2] = np.nan
        if data.draw(st.booleans()):
            image *= np.finfo(dtype).max / 250
    weights = rng.uniform(size=shape[:2]) * 3 if data.draw(st.booleans()) else None
    options = {"reference_max": white(reference), "iterations": data.draw(st.integers(1, 4))}
    given = [as_dask(data, part) for part in (image, reference)]
    lazy_weights = as_dask(data, weights)
    expected = outcome(
        lambda: bilateral.domain_transform(image, reference, 8, 30, weights=weights, **options)
    )
    actual = outcome(
        lambda: compute(
            bilateral.dask.domain_transform(*given, 8, 30, weights=lazy_weights, **options)
        )
    )
    if isinstance(expected, str) or isinstance(actual, str):
        assert type(expected) is type(actual)
        return
    assert same_bits(expected, actual)


def scene(shape: tuple[int, int] = (90, 130)) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    y, x = np.mgrid[: shape[0], : shape[1]]
    tone = 120 + 80 * np.sin(x / 9) + 30 * np.cos(y / 7)
    photo = np.clip(tone[..., np.newaxis] + rng.normal(0, 9, (*shape, 3)), 0, 255).astype(np.uint8)
    target = (tone + rng.normal(0, 20, shape)).astype(np.float32)
    target[rng.uniform(size=shape) < 0.3] = np.nan
    return photo, target, rng.uniform(size=shape).astype(np.float32)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers_give_the_same_bits(scheduler: str) -> None:
    photo, target, confidence = scene()
    lazy = bilateral.dask.solve(
        da.from_array(photo, chunks=(40, 50, 2)),
        da.from_array(target, chunks=(33, 44)),
        da.from_array(confidence, chunks=(90, 13)),
        sigma_xy=6.5,
    )
    expected = bilateral.solve(photo, target, confidence, sigma_xy=6.5)
    with dask.config.set({"multiprocessing.context": "spawn"}):
        actual = lazy.compute(scheduler=scheduler, num_workers=2)
    assert same_bits(expected, actual)


def test_solve_is_lazy_and_keeps_shape_and_dtype() -> None:
    def fail(block: Array) -> Array:
        raise AssertionError("computed")

    photo = da.zeros((64, 64, 3), dtype=np.uint8, chunks=20).map_blocks(fail, dtype=np.uint8)
    target = da.zeros((64, 64, 2), dtype=np.uint16, chunks=30)
    x, info = bilateral.dask.solve(photo, target, return_info=True)
    assert x.shape == target.shape
    assert x.dtype == np.uint16
    assert x.chunks == ((32, 32), (32, 32), (2,))
    with pytest.raises(AssertionError, match="computed"):
        info.compute(scheduler="synchronous")


def test_info_is_that_of_the_call_in_memory() -> None:
    photo, target, confidence = scene()
    given = [da.from_array(part, chunks=50) for part in (photo, target, confidence)]
    _, expected = bilateral.solve(photo, target, confidence, return_info=True)
    info = bilateral.dask.solve(*given, return_info=True)[1].compute(scheduler="synchronous")
    assert (info.iterations, info.converged, info.residuals, info.n_vertices) == (
        expected.iterations,
        expected.converged,
        expected.residuals,
        expected.n_vertices,
    )


def test_the_solve_announces_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    photo, target, _ = scene()
    with caplog.at_level("INFO", "bilateral.dask"):
        compute(bilateral.dask.solve(da.from_array(photo), da.from_array(target)))
    assert "MB of memory on this worker" in caplog.text


def test_map_frames_applies_a_function_to_each_image() -> None:
    photo, target, confidence = scene()
    photos, targets = np.stack([photo, photo[::-1], photo]), np.stack([target, target, target + 1])
    weights = np.stack([confidence] * 3)
    lazy = bilateral.dask.map_frames(
        bilateral.solve,
        *(da.from_array(part, chunks=40) for part in (photos, targets, weights)),
        sigma_xy=10,
        frames=2,
        like=1,
    )
    assert lazy.shape == targets.shape
    for i, x in enumerate(compute(lazy)):
        assert same_bits(x, bilateral.solve(photos[i], targets[i], weights[i], sigma_xy=10))


def test_map_frames_takes_none_for_a_missing_stack() -> None:
    photo, target, _ = scene()
    lazy = bilateral.dask.map_frames(
        lambda x, missing, guide: bilateral.solve(guide, x, missing),
        da.from_array(target[np.newaxis]),
        None,
        da.from_array(photo[np.newaxis]),
    )
    assert same_bits(compute(lazy)[0], bilateral.solve(photo, target))


PHOTO = da.zeros((20, 30, 3), dtype=np.uint8)
DEPTH = da.zeros((20, 30), dtype=np.float32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothness": "auto"}, "smoothness: expected a number for Dask arrays"),
        ({"sigma_xy": 0}, "sigma_xy: expected"),
        ({"smoothness": -1}, "smoothness: expected"),
        ({"warm_start": DEPTH[:10]}, r"warm_start: expected the target's shape \(20, 30\)"),
        ({"warm_start": "last"}, "warm_start: expected an array like target, got 'last'"),
        ({"sigma_t": 3}, "sigma_t: expected None with Dask arrays"),
        ({"model": "planar"}, r"model \(Dask arrays\): expected"),
        ({"target": DEPTH[:10]}, r"target: expected shape \(20, 30\) or \(20, 30, K\)"),
        ({"confidence": DEPTH[:10]}, r"confidence: expected shape \(20, 30\), got \(10, 30\)"),
        ({"reference": PHOTO[..., :2]}, "reference: expected a gray image"),
        ({"reference": PHOTO[0, 0]}, "reference: expected a gray image"),
        ({"target": DEPTH[DEPTH > 0]}, "target: expected a Dask array of known shape"),
        ({"smooth": 3}, "smooth: expected two numbers"),
    ],
)
def test_mistakes_are_found_before_any_work(options: dict[str, Any], message: str) -> None:
    arguments = {"reference": PHOTO, "target": DEPTH, **options}
    with pytest.raises((TypeError, ValueError), match=message):
        bilateral.dask.solve(**arguments)


def test_a_block_knows_its_place() -> None:
    photo = np.zeros((32, 32), np.float32)
    photo[20, 3] = np.inf
    lazy = bilateral.dask.solve(da.from_array(photo, chunks=16), da.zeros((32, 32), chunks=16))
    with pytest.raises(ValueError, match="the block at row 16, column 0"):
        compute(lazy)


def test_layouts_of_blocks_are_shared() -> None:
    layout = blocks.Layout((64, 64), 8.0)
    assert layout.whole_chunks([(10, 10, 44), (64,)]) == ((8, 16, 40), (64,))
