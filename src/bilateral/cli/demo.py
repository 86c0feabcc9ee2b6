"""Spoil a true depth map in several ways, repair it with the solver, and draw the outcome.

Run it with ``python -m bilateral.cli.demo``. The sigmas and smoothnesses were picked on this very
photograph and its truth: the figures show what to expect at best, they are no benchmark.
"""

import argparse
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bilateral

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]

# Fine in space for thin bars and spokes, coarse in colour so that textured surfaces stay whole.
SIGMAS: dict[str, Any] = {"sigma_xy": 4, "sigma_luma": 16, "sigma_chroma": 12}
ERROR_SHOWN = 10.0


@dataclass(frozen=True)
class Problem:
    """One solve and what to hold it against."""

    reference: Array
    target: Array
    truth: Array
    simple: Array
    """What a usual remedy makes of the same target."""
    smoothness: float
    loss: bilateral.Loss | None = None
    """For a target with wrong values."""


@dataclass(frozen=True)
class Scene:
    """A way to spoil a map: add one to `SCENES` to show more."""

    name: str
    shows: str
    remedy: str
    """The usual remedy, in a word or two."""
    make: Callable[[], Problem]
    counts: str = ""
    """What the solver counts, where it is not steps."""


@dataclass(frozen=True)
class Result:
    """How one scene went. Errors are means of absolute differences where the truth is known."""

    scene: Scene
    info: bilateral.SolveInfo
    pixels: int
    before: float
    """Of the spoiled map, with unknown pixels set to the mean of the known ones."""
    simple: float
    after: float
    file: Path


def holes() -> Problem:
    """Boxes and ellipses cut out."""
    photo, truth = motorcycle()
    height, width = truth.shape
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    missing = np.zeros(truth.shape, bool)
    for number in range(28):
        dy = (y - rng.uniform(0, height)) / rng.uniform(18, 55)
        dx = (x - rng.uniform(0, width)) / rng.uniform(18, 55)
        missing |= (dy**2 + dx**2 < 1) if number % 2 else (np.maximum(abs(dy), abs(dx)) < 1)
    target = np.where(missing, np.nan, truth)
    # What is known is exact, so hardly smooth it: only the gaps are to be filled.
    return Problem(photo, target, truth, nearest(target), smoothness=0.1)


def noise() -> Problem:
    """Gaussian noise everywhere and a wrong value at every tenth pixel."""
    photo, truth = motorcycle()
    rng = np.random.default_rng(0)
    target = truth + rng.normal(0, 4, truth.shape).astype(np.float32)
    wrong = rng.random(truth.shape) < 0.1
    target[wrong] = rng.uniform(np.nanmin(truth), np.nanmax(truth), wrong.sum())
    target[np.isnan(truth)] = np.nan
    # Twice the noise away from its surroundings, a pixel is more likely wrong than noisy.
    loss = bilateral.GemanMcClure(8.0)
    return Problem(photo, target, truth, bilateral.median(target), smoothness=0.1, loss=loss)


def sparse() -> Problem:
    """One pixel in a hundred."""
    photo, truth = motorcycle()
    known = np.random.default_rng(0).random(truth.shape) < 0.01
    target = np.where(known, truth, np.nan)
    # Samples are exact and few: the least smoothness that still joins them.
    return Problem(photo, target, truth, nearest(target), smoothness=0.03)


SCENES = (
    Scene("holes", "large regions of the map are missing", "nearest pixel", holes),
    Scene(
        "noise", "noise of 4 px, and 10 % of the pixels are wrong", "5x5 median", noise, " rounds"
    ),
    Scene("sparse", "only 1 % of the pixels are known", "nearest pixel", sparse),
)


@cache
def motorcycle() -> tuple[Array, Array]:
    """Photograph and true disparity, NaN where unknown: Middlebury 2014, quarter size."""
    from skimage.data import stereo_motorcycle

    load: Any = stereo_motorcycle  # untyped, and not always there when types are checked
    photo, _, disparity = load()
    return photo, np.where(np.isfinite(disparity), disparity, np.nan).astype(np.float32)


def nearest(target: Array) -> Array:
    """Give unknown pixels the value of the nearest known one."""
    from scipy.ndimage import distance_transform_edt

    where = distance_transform_edt(np.isnan(target), return_distances=False, return_indices=True)
    filled: Array = target[tuple(where)]
    return filled


def repair(
    problem: Problem, callback: Callable[[int, float], Any] | None
) -> tuple[Array, bilateral.SolveInfo]:
    """Solve; where values are wrong, robustly, and then as the paper's authors clean up."""
    grid = bilateral.BilateralGrid(problem.reference, **SIGMAS)
    solver = bilateral.BilateralSolver(grid, problem.smoothness)
    if problem.loss is None:
        return solver.solve(problem.target, callback=callback, return_info=True)
    x, info = solver.solve_robust(
        problem.target, loss=problem.loss, smooth=(8, 16), callback=callback, return_info=True
    )
    return bilateral.median(x), info


def run(scene: Scene, output: Path, callback: Callable[[int, float], Any] | None = None) -> Result:
    """Make, solve and draw one scene.

    Parameters
    ----------
    scene : Scene
    output : Path
        Folder for the picture; made if need be.
    callback : function of (step, residual), optional
        Called after each step of the solver.

    Returns
    -------
    Result
    """
    output.mkdir(parents=True, exist_ok=True)
    problem = scene.make()
    target, truth = problem.target, problem.truth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)  # the summary tells it
        x, info = repair(problem, callback)
    filled = np.where(np.isfinite(target), target, np.nanmean(target))
    before, simple, after = (error(values, truth) for values in (filled, problem.simple, x))
    file = output / f"{scene.name}.png"
    result = Result(scene, info, target.size, before, simple, after, file)
    draw(result, problem, x)
    return result


def error(values: Array, truth: Array) -> float:
    """Mean absolute difference where the truth is known."""
    return float(np.mean(np.abs(values - truth)[np.isfinite(truth)], dtype=np.float64))


def draw(result: Result, problem: Problem, x: Array) -> None:
    """Write photo, spoiled map, repaired map and error map, side by side."""
    from bilateral.cli import pictures

    truth = problem.truth
    depth = pictures.Scale(
        pictures.turbo, np.floor(np.nanmin(truth)), np.ceil(np.nanmax(truth)), "px of disparity"
    )
    wrong = pictures.Scale(pictures.heat, 0, ERROR_SHOWN, "px of error", open_ended=True)
    known = np.isfinite(problem.target)
    dotted = known.mean() < 0.05
    shown = pictures.enlarge_dots(problem.target) if dotted else problem.target
    blank = f"gray: {100 - 100 * known.mean():.0f} % unknown, counted as the mean" + (
        "; dots enlarged" if dotted else ""
    )
    panels = (
        pictures.Panel(problem.reference, "Photo", "Middlebury 2014, Motorcycle"),
        pictures.Panel(
            depth.paint(shown), f"Spoiled: mean error {result.before:.2f} px", blank, depth
        ),
        pictures.Panel(
            depth.paint(x),
            f"Repaired: mean error {result.after:.2f} px",
            f"{result.scene.remedy} instead: {result.simple:.2f} px",
            depth,
        ),
        pictures.Panel(wrong.paint(np.abs(x - truth)), "Error left", "gray: truth unknown", wrong),
    )
    title = f"{result.scene.name}: {result.scene.shows}"
    pictures.sheet(title, panels).save(result.file)


def summarize(results: Sequence[Result], console: "Console") -> None:
    """Print a table and where the pictures are."""
    from rich import box
    from rich.table import Table

    title = "Mean absolute errors in px of disparity"
    table = Table(box=box.SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("scene")
    for name in ("pixels", "vertices", "steps", "time", "spoiled", "usual remedy", "solver"):
        table.add_column(name, justify="right")
    for result in results:
        info = result.info
        table.add_row(
            result.scene.name,
            f"{result.pixels:,}",
            f"{info.n_vertices:,}",
            f"{info.iterations}{result.scene.counts}"
            + ("" if info.converged or result.scene.counts else ", not converged"),
            f"{info.seconds:.2f} s",
            f"{result.before:.2f}",
            f"{result.simple:.2f} {result.scene.remedy}",
            f"[bold]{result.after:.2f}[/bold]",
        )
    console.print(table)
    console.print("Spoiled: unknown pixels count as the mean of the known ones.\n", soft_wrap=True)
    for result in results:
        console.print(
            f"{result.scene.name:>8}  {result.file}", soft_wrap=True, highlight=False, markup=False
        )


def show(scenes: Sequence[Scene], output: Path) -> list[Result]:
    """Run scenes with a progress display, and a summary at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console()
    if not console.is_terminal:
        console.width = 100  # a file or a pipe has no width
    columns = (SpinnerColumn(), BarColumn(20), TextColumn("{task.description}"))
    results = []
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=len(scenes))
        for scene in scenes:

            def tell(step: int, residual: float, name: str = scene.name) -> None:
                text = f"{name}: step {step}, estimated error {residual:.0e}"
                bar.update(task, description=text)

            bar.update(task, description=f"{scene.name}: preparing")
            results.append(run(scene, output, tell))
            bar.advance(task)
    summarize(results, console)
    return results


def main(argv: list[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(
        "bilateral.cli.demo", description=(__doc__ or "").split("\n")[0]
    )
    names = [scene.name for scene in SCENES]
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where to write"
    )
    parser.add_argument(
        "--scene", action="append", choices=names, help="only this one; may be given repeatedly"
    )
    parser.add_argument("--list", action="store_true", help="name the scenes and stop")
    arguments = parser.parse_args(argv)
    if arguments.list:
        for scene in SCENES:
            print(f"{scene.name:8} {scene.shows}")
        return 0
    missing = [name for name in ("rich", "skimage") if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f'the demo needs {" and ".join(missing)}: pip install "bilateral[demo]"',
            file=sys.stderr,
        )
        return 1
    try:
        show([s for s in SCENES if s.name in (arguments.scene or names)], arguments.output)
    except OSError as problem:
        print(f"cannot write the pictures: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
