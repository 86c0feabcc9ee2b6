"""Spoil a true depth map in several ways, repair it with the solver, and draw the outcome."""

import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral.cli.console import complain
from bilateral.cli.pairing import UsageError
from bilateral.cli.scenes import SCENES, Problem, Scene

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]

ERROR_SHOWN = 10.0
CONTACT_SHEET = "all.png"


@dataclass(frozen=True)
class Result:
    """How one scene went. Errors are means of absolute differences where the truth is known."""

    scene: Scene
    info: bilateral.SolveInfo | None
    """Of a single solve."""
    seconds: float
    pixels: int
    before: float
    """Of the spoiled map, with unknown pixels set to the mean of the known ones."""
    simple: float
    after: float
    file: Path


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
        began = time.perf_counter()
        x, info = problem.repair(callback)
        seconds = time.perf_counter() - began
    filled = np.where(np.isfinite(target), target, np.nanmean(target))
    before, simple, after = (error(values, truth) for values in (filled, problem.simple, x))
    file = output / f"{scene.name}.png"
    result = Result(scene, info, seconds, target.size, before, simple, after, file)
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
    blank = f"gray: {100 - 100 * known.mean():.0f} % unknown, counted as the mean"
    if dotted:
        blank += "; dots enlarged"
    if known.all():
        blank = ""
    panels = [
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
    ]
    if problem.extra is not None:
        panels.append(problem.extra(x))
    title = f"{result.scene.name}: {result.scene.shows}"
    pictures.sheet(title, panels).save(result.file)


def work(result: Result) -> tuple[str, str]:
    """Vertices and steps of a single solve."""
    info = result.info
    if info is None:
        return "", ""
    steps = f"{info.iterations}{result.scene.counts}"
    if not (info.converged or result.scene.counts):
        steps += ", not converged"
    return f"{info.n_vertices:,}", steps


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
        vertices, steps = work(result)
        table.add_row(
            result.scene.name,
            f"{result.pixels:,}",
            vertices,
            steps,
            f"{result.seconds:.2f} s",
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

    from bilateral.cli import pictures

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
    if len(results) > 1:
        file = output / CONTACT_SHEET
        pictures.contact_sheet([result.file for result in results]).save(file)
        console.print(f"{'all':>8}  {file}", soft_wrap=True, highlight=False, markup=False)
    return results


def main(output: Path, only: Sequence[str] = (), list_scenes: bool = False) -> int:
    """Run the demo, or some of its scenes; return the exit code."""
    names = [scene.name for scene in SCENES]
    if list_scenes:
        for scene in SCENES:
            print(f"{scene.name:8} {scene.shows}")
        return 0
    for name in only:
        if name not in names:
            raise UsageError(f"--scene: expected one of {', '.join(names)}, got {name!r}.")
    missing = [name for name in ("rich", "skimage") if importlib.util.find_spec(name) is None]
    if missing:
        complain(f'the demo needs {" and ".join(missing)}: pip install "bilateral[demo]"')
        return 1
    try:
        show([s for s in SCENES if s.name in (only or names)], output)
    except OSError as problem:
        complain(f"cannot write the pictures: {problem}")
        return 1
    return 0
