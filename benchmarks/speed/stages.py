"""Time the stages of one solve."""

import numpy as np

from benchmarks.common.timing import clock
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Problem
from bilateral import color, validation
from bilateral.backends import cpu
from bilateral.numerics import policy

STAGES = ("grid", "pyramid", "bistochastize", "splat", "start", "PCG", "slice")


def stages(problem: Problem, sigma: float) -> tuple[dict[str, float], int]:
    """Seconds of each of `STAGES`, and the number of vertices."""
    image = validation.reference(problem.reference, None)
    weights = validation.blur("paper", 5)
    matrix, offset = color.feature_map(3, image.highest)
    cells = [float(sigma)] * 3
    target = problem.target[:, :, np.newaxis]

    grid = cpu.build_grid(
        image.pixels,
        matrix,
        offset,
        cells,
        image.highest,
        cells[:2],
        blur=weights,
        edge_guard=policy.EDGE_GUARD,
        lowest_eigenvalue=policy.LOWEST_EIGENVALUE,
        level_stiffness=policy.LEVEL_STIFFNESS,
        faint_epsilons=policy.FAINT_EPSILONS,
    )
    splat, seen = clock(cpu.splat_target, grid, target, problem.confidence)
    start, y = clock(cpu.start, grid, seen.weight, seen.weighted, "pyramid", SMOOTHNESS)
    pcg, _ = clock(_pcg, grid, seen, y)
    slice_, _ = clock(cpu.slice_, grid, y, problem.shape)
    seconds = (*grid.core.build_seconds, splat, start, pcg, slice_)
    return dict(zip(STAGES, seconds, strict=True)), grid.n_vertices


def _pcg(grid: cpu.Grid, seen: cpu.Observation, y: cpu.Array) -> None:
    cpu.pcg(
        cpu.Solver(grid, "pyramid"),
        seen.weight,
        seen.weighted,
        y,
        seen.high - seen.low,
        fill=True,
        smoothness=SMOOTHNESS,
        min_iterations=STEPS,
        max_iterations=STEPS,
        tolerance=-1.0,
        movement_fraction=0.0,
        step_noise=policy.STEP_NOISE,
        error_window=policy.ERROR_WINDOW,
        callback=None,
    )
