"""Blocks: for any chunks in any order, the result has the bits of the solve in memory."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral.numerics import blocks
from bilateral.numerics.options import GridOptions, SolveOptions
from support.block_chunks import chunks, outcome, same_bits
from support.block_solves import DEFAULTS, BlockSolve
from support.strategies import Problem, problems, seeds, sigmas, white

Array = npt.NDArray[Any]


TARGETS = ("float32", "float64", "float16", "uint8", "uint16", "int32", "bool")


def with_dtype(problem: Problem, dtype: str) -> Array:
    target = problem.target
    if np.dtype(dtype).kind != "f":
        target = np.clip(np.nan_to_num(target * 10, posinf=0, neginf=0), 0, 200)
    return target.astype(dtype)


def earlier_solution(target: Array, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=target.shape) * rng.choice([1.0, 1e3, 1e9])


@given(st.data(), problems(40), st.sampled_from(TARGETS), seeds)
def test_any_chunks_give_the_same_bits(
    data: st.DataObject, problem: Problem, dtype: str, seed: int
) -> None:
    target = with_dtype(problem, dtype)
    confidence = problem.confidence
    if confidence is not None and data.draw(st.booleans()):
        confidence = confidence.astype(np.float32)
    if dtype == "bool":
        confidence = None
    options = problem.options | {
        "smoothness": problem.smoothness,
        "reference_max": white(problem.reference),
        "rank_tolerance": data.draw(st.none() | st.just(0.01)),
        "method": data.draw(st.none() | st.just("paper")),
        "warm_start": data.draw(st.none() | st.just(earlier_solution(target, seed))),
    }
    cut = data.draw(chunks(target.shape))
    expected = outcome(lambda: bilateral.solve(problem.reference, target, confidence, **options))
    solve = lambda: BlockSolve(  # noqa: E731
        problem.reference, target, confidence, cut, seed, **options
    ).plain()[0]
    actual = outcome(solve)
    if isinstance(actual, str) and "in blocks" in actual:
        return  # numbers of these magnitudes are solved only in memory
    if isinstance(expected, str) or isinstance(actual, str):
        assert type(expected) is type(actual)
        return
    assert same_bits(expected, actual)


LOSSES = (
    bilateral.GemanMcClure(1.0),
    bilateral.Welsch(0.3),
    bilateral.Huber(0.5),
    bilateral.Charbonnier(2.0),
    bilateral.Barron(-1.0, 0.5),
)


class Tukey:
    """A loss that the core does not know."""

    def rho(self, e: Array) -> Array:
        return 1 - np.maximum(1 - np.asarray(e) ** 2, 0) ** 3

    def weight(self, e: Array) -> Array:
        return 6 * np.maximum(1 - np.asarray(e) ** 2, 0) ** 2


@given(
    st.data(),
    problems(30, stiff=False),
    st.sampled_from(["float32", "float64", "uint8"]),
    st.sampled_from([*LOSSES, Tukey()]),
    st.sampled_from(["joint", "channel"]),
    seeds,
)
def test_robust_rounds_give_the_same_bits(
    data: st.DataObject, problem: Problem, dtype: str, loss: Any, weights: str, seed: int
) -> None:
    target = with_dtype(problem, dtype)
    options = problem.options | {"reference_max": white(problem.reference)}
    rounds = data.draw(st.integers(1, 5))
    min_change = data.draw(st.sampled_from([0.0, 1e-2]))
    cut = data.draw(chunks(target.shape))

    def in_memory() -> Array:
        grid = bilateral.BilateralGrid(problem.reference, **options)
        solver = bilateral.BilateralSolver(grid, problem.smoothness)
        x: Array = solver.solve_robust(
            target, problem.confidence, loss, rounds, weights=weights, min_change=min_change
        )
        return x

    def in_blocks() -> Array:
        solve = BlockSolve(
            problem.reference,
            target,
            problem.confidence,
            cut,
            seed,
            smoothness=problem.smoothness,
            **options,
        )
        return solve.robust(loss, rounds, weights, min_change)[0]

    expected, actual = outcome(in_memory), outcome(in_blocks)
    if isinstance(actual, str) and "in blocks" in actual:
        return
    if isinstance(expected, str) or isinstance(actual, str):
        assert type(expected) is type(actual)
        return
    assert same_bits(expected, actual)


def test_few_exact_values_are_solved_in_float64_as_in_memory() -> None:
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (70, 90), np.uint8)
    target = np.full(photo.shape, np.nan, np.float32)
    target[3, 4], target[60, 80] = 1, 2
    expected = bilateral.solve(photo, target, smoothness=1000)
    solve = BlockSolve(photo, target, None, ([30, 40], [90]), smoothness=1000)
    system = blocks.observe(solve.joined, solve.sums, 1000.0)
    assert system.weight.dtype == np.float64
    assert same_bits(expected, solve.plain()[0])


@given(st.data(), sigmas, st.integers(1, 80), st.integers(1, 80))
def test_whole_chunks_are_whole_tiles(
    data: st.DataObject, sigma: float, height: int, width: int
) -> None:
    layout = blocks.Layout((height, width), sigma)
    whole = layout.whole_chunks(data.draw(chunks((height, width))))
    assert [sum(sizes) for sizes in whole] == [height, width]
    assert all(size > 0 for sizes in whole for size in sizes)
    for axis, sizes in enumerate(whole):
        cells = np.floor(np.arange((height, width)[axis]) / sigma + 1e-9)
        for border in np.cumsum(sizes)[:-1]:
            assert cells[border] != cells[border - 1]


def test_a_block_that_cuts_a_tile_is_an_error() -> None:
    options = blocks.BlockOptions(
        blocks.Layout((32, 32), 8.0), GridOptions.checked(DEFAULTS, 3), SolveOptions()
    )
    with pytest.raises(ValueError, match="whole tiles of 8 pixels, got the pixels from 4 to 12"):
        blocks.build_block(np.zeros((8, 8), np.uint8), (4, 0), options)


def test_an_error_names_the_block() -> None:
    reference = np.zeros((32, 32), np.float32)
    reference[20, 3] = np.nan
    target = np.zeros((32, 32), np.float32)
    with pytest.raises(ValueError, match=r"row 4, column 3.*the block at row 16, column 0\."):
        BlockSolve(reference, target, None, ([16, 16], [32]))


def test_a_pickled_block_is_compact() -> None:
    rng = np.random.default_rng(1)
    photo = rng.integers(100, 120, (256, 256, 3), np.uint8)
    block = BlockSolve(photo, np.zeros((256, 256)), None, ([256], [256])).blocks[0]
    assert block.nbytes <= photo.size / 3 + 5 * block.core.n_vertices


def test_a_joined_grid_has_no_pixels() -> None:
    solve = BlockSolve(np.zeros((16, 16), np.uint8), np.zeros((16, 16)), None, ([16], [16]))
    with pytest.raises(ValueError, match="pixels of this grid are in blocks"):
        solve.joined.grid.slice(np.zeros(solve.joined.index.n_vertices))


@given(st.data(), problems(40))
def test_the_joined_grid_is_the_grid_in_memory(data: st.DataObject, problem: Problem) -> None:
    options = problem.options | {"reference_max": white(problem.reference)}
    grid = bilateral.BilateralGrid(problem.reference, **options)
    cut = data.draw(chunks(problem.target.shape))
    solve = BlockSolve(problem.reference, problem.target, None, cut, **options)
    joined = solve.joined.grid
    assert np.array_equal(joined.coordinates(), grid.coordinates())
    vertices = np.arange(grid.n_vertices, dtype=np.float64)
    assert np.array_equal(joined.blur(vertices), grid.blur(vertices))
