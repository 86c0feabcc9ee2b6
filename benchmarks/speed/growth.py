"""Measure how time grows with the image: 1/4, 1, 4 and 16 times the photograph."""

from typing import Any

import bilateral
from benchmarks.common.machine import Others
from benchmarks.common.timing import repeated
from benchmarks.speed.cases import Problem, solve


def growth(
    problem: Problem, sigma: float, threads: int, repeats: int, quick: bool
) -> dict[str, Any]:
    """Time the middle quarter, the photograph, and its tilings of 2 x 2 and 4 x 4 mirror images.

    The sizes follow one after the other: in turns, a virtual machine would have to fetch the
    memory for the largest from its host each time, and the clock would include it. The tilings
    have the photograph's texture; the quarter may differ, which the number of vertices shows.
    """
    bilateral.set_num_threads(threads)
    height, width = problem.shape
    sizes = {
        0.25: problem.centre(height // 2, width // 2),
        1.0: problem,
        **{float(times**2): problem.mirrored(times) for times in ((2,) if quick else (2, 4))},
    }
    others = Others()
    timings = {factor: repeated(solve, repeats, task, sigma) for factor, task in sizes.items()}
    other_work = others.cores()
    rows = [
        {
            "factor": factor,
            "megapixels": task.n_pixels / 1e6,
            "vertices": bilateral.BilateralGrid(task.reference, sigma, sigma, sigma).n_vertices,
            "seconds": timings[factor],
        }
        for factor, task in sizes.items()
    ]
    largest = max(sizes)
    ratio = timings[largest].median / (largest * timings[1.0].median)
    return {"sigma": sigma, "sizes": rows, "ratio": ratio, "other_work": other_work}
