"""Spoil what is true in several ways, repair it with the solver, and draw the outcome."""

import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

import bilateral
from bilateral.cli.demo.scenes import SCENES, Problem, Scene
from bilateral.cli.demo.views import gaps
from bilateral.cli.display.console import complain
from bilateral.cli.files.pairing import UsageError

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]

CONTACT_SHEET = "all.png"


@dataclass(frozen=True)
class Result:
    """How one scene went. Errors are means over the pixels whose truth is known."""

    scene: Scene
    info: bilateral.SolveInfo | None
    """Of a single solve."""
    seconds: float
    pixels: int
    before: float
    simple: float
    after: float
    unit: str
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
    look, truth = problem.look, problem.truth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)  # the summary tells it
        began = time.perf_counter()
        x, info = problem.repair(callback)
        seconds = time.perf_counter() - began
    before, simple, after = (
        look.error(values, truth) for values in (problem.target, problem.simple, x)
    )
    file = output / f"{scene.name}.png"
    pixels = problem.reference.shape[0] * problem.reference.shape[1]
    result = Result(scene, info, seconds, pixels, before, simple, after, look.unit, file)
    draw(result, problem, x)
    return result


def draw(result: Result, problem: Problem, x: Array) -> None:
    """Write photo, what was spoiled, what was repaired and the error, side by side."""
    from bilateral.cli.display import pictures

    look, unit = problem.look, result.unit
    panels = [
        pictures.Panel(problem.reference, *problem.caption),
        look.panel(
            problem.target, f"Spoiled: mean error {result.before:.2f} {unit}", gaps(problem.target)
        ),
        look.panel(
            x,
            f"Repaired: mean error {result.after:.2f} {unit}",
            f"{result.scene.remedy} instead: {result.simple:.2f} {unit}",
        ),
        look.error_panel(x, problem.truth),
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

    table = Table(box=box.SIMPLE_HEAD, title="Mean errors", padding=(0, 1, 0, 0), pad_edge=False)
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
            f"[bold]{result.after:.2f}[/bold] {result.unit}",
        )
    console.print(table)
    console.print("Spoiled: unknown disparities count as the mean of the known ones.\n")
    for result in results:
        console.print(
            f"{result.scene.name:>8}  {result.file}", soft_wrap=True, highlight=False, markup=False
        )


def show(scenes: Sequence[Scene], output: Path) -> list[Result]:
    """Run scenes with a progress display, and a summary at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    from bilateral.cli.display import pictures

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
