"""The same bits from any number of threads, and from Python threads that call at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from support.photos import noisy_photo
from support.strategies import Array

COUNTS = (1, 2, 3, 7)


# Large enough that every part of a solve uses seven threads.
CASES = {
    "gray, one channel": ((600, 800), (), (), "float32", {"sigma_xy": 2}),
    "RGB, one channel": ((600, 800), (3,), (), "float32", {"sigma_xy": 4}),
    "RGB, three channels": ((600, 800), (3,), (3,), "float32", {"sigma_xy": 3.5}),
    "gray, three channels": ((600, 800), (), (3,), "float64", {"sigma_xy": 3}),
    "RGB, nine channels": ((400, 600), (3,), (9,), "float64", {"sigma_xy": 4}),
    "wide keys": ((600, 800), (3,), (), "float64", {"sigma_xy": 4, "sigma_chroma": 1e-3}),
    "a wide image": ((40, 12_000), (3,), (), "float32", {"sigma_xy": 8}),
}
SMOKE = "RGB, one channel"


@pytest.mark.stress
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.smoke if case == SMOKE else ()) for case in CASES],
)
def test_the_same_bits_from_any_number_of_threads(case: str, keep_num_threads: None) -> None:
    shape, colours, channels, dtype, options = CASES[case]
    rng = np.random.default_rng(0)
    reference = noisy_photo(shape, colours, 20)
    target = rng.normal(size=(*shape, *channels)).astype(dtype)
    confidence = (rng.uniform(size=shape) < 0.1) * rng.uniform(size=shape)
    vertices: Array | None = None
    with_one_thread: list[Array] = []
    for threads in (*COUNTS, 2):
        bilateral.set_num_threads(threads)
        grid = BilateralGrid(reference, **options)
        assert grid.n_vertices > 10_000
        if vertices is None:
            vertices = rng.normal(size=(grid.n_vertices, *channels)).astype(dtype)
        results = [grid.coordinates(), grid.splat(target), grid.slice(vertices)]
        results.append(grid.blur(vertices))
        for more in ({"method": "paper", "max_iterations": 8}, {"tolerance": 0.02}):
            x, info = BilateralSolver(grid, **more).solve(target, confidence, return_info=True)
            results += [x, np.array(info.residuals)]
        jacobi = BilateralSolver(grid, preconditioner="jacobi", initial="flat", tolerance=0.05)
        results.append(jacobi.solve(target, confidence, warm_start=target))
        with_one_thread = with_one_thread or results
        for result, same in zip(results, with_one_thread, strict=True):
            np.testing.assert_array_equal(result, same)


def test_small_problems_with_more_threads_than_pixels(keep_num_threads: None) -> None:
    bilateral.set_num_threads(64)
    for shape in ((1, 1), (1, 5), (7, 3)):
        target = np.arange(np.prod(shape), dtype=float).reshape(shape)
        x = bilateral.solve(np.zeros(shape, np.uint8), target, sigma_xy=1)
        bilateral.set_num_threads(1)
        np.testing.assert_array_equal(
            x, bilateral.solve(np.zeros(shape, np.uint8), target, sigma_xy=1)
        )
        bilateral.set_num_threads(64)


def problem_of(seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    shape = (200 + 10 * seed, 300)
    reference = noisy_photo(shape, (3,), 20 + seed)
    return reference, rng.normal(size=shape), (rng.uniform(size=shape) < 0.2).astype(float)


def test_calls_from_eight_python_threads_at_once(keep_num_threads: None) -> None:
    bilateral.set_num_threads(2)
    problems = [problem_of(seed) for seed in range(8)]
    serial = [bilateral.solve(*problem, sigma_xy=3) for problem in problems]
    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            parallel = pool.map(lambda problem: bilateral.solve(*problem, sigma_xy=3), problems)
            for x, expected in zip(parallel, serial, strict=True):
                np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_new_solver_from_eight_python_threads_at_once(dtype: str) -> None:
    # A grid prepares its float64 data on the first use, and only once.
    reference, target, confidence = problem_of(0)
    target = target.astype(dtype)
    solver = BilateralSolver(BilateralGrid(reference, 3), tolerance=1e-3)
    expected = BilateralSolver(BilateralGrid(reference, 3), tolerance=1e-3).solve(
        target, confidence
    )
    with ThreadPoolExecutor(8) as pool:
        for x in pool.map(lambda _: solver.solve(target, confidence), range(16)):
            np.testing.assert_array_equal(x, expected)


def test_callbacks_from_several_python_threads() -> None:
    reference, target, confidence = problem_of(0)
    solver = BilateralSolver(BilateralGrid(reference, 3))

    def steps(_: int) -> list[int]:
        seen: list[int] = []
        solver.solve(target, confidence, callback=lambda step, _: seen.append(step))
        return seen

    with ThreadPoolExecutor(4) as pool:
        for seen in pool.map(steps, range(8)):
            assert seen == list(range(1, len(seen) + 1))
            assert len(seen) >= 2
