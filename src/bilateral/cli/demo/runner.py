"""Run the scenes of the demo: spoil, repair, measure and draw each one."""

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
from bilateral.cli.demo.views import unknown_note
from bilateral.cli.display.console import print_message
from bilateral.cli.errors import FAILED, UsageError

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]

CONTACT_SHEET = "all.png"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one scene. Errors are means over the pixels with a known truth."""

    scene: Scene
    info: bilateral.SolveInfo | None
    """Information about the solve, if the scene has a single one."""
    seconds: float
    pixels: int
    before: float
    """Error of the spoiled input."""
    baseline: float
    """Error of the usual method for the same input."""
    after: float
    """Error of the repaired input."""
    unit: str
    file: Path


def run(scene: Scene, output: Path, callback: Callable[[int, float], Any] | None = None) -> Outcome:
    """Make, solve and draw one scene.

    Parameters
    ----------
    scene : Scene
    output : Path
        Folder for the picture; it is made if it does not exist.
    callback : function of (step, residual), optional
        Called after each step of the solver.

    Returns
    -------
    Outcome
    """
    output.mkdir(parents=True, exist_ok=True)
    problem = scene.make()
    view, truth = problem.view, problem.truth
    with warnings.catch_warnings():
        # The summary says which solves did not converge.
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)
        start = time.perf_counter()
        x, info = problem.repair(callback)
        seconds = time.perf_counter() - start
    before, baseline, after = (
        view.mean_error(values, truth) for values in (problem.target, problem.baseline, x)
    )
    file = output / f"{scene.name}.png"
    pixels = problem.reference.shape[0] * problem.reference.shape[1]
    outcome = Outcome(scene, info, seconds, pixels, before, baseline, after, view.unit, file)
    draw(outcome, problem, x)
    return outcome


def draw(outcome: Outcome, problem: Problem, x: Array) -> None:
    """Write photograph, spoiled input, repaired output and error side by side to a file."""
    from bilateral.cli.display import sheets

    view, unit = problem.view, outcome.unit
    panels = [
        sheets.Panel(problem.reference, *problem.caption),
        view.panel(
            problem.target,
            f"Spoiled: mean error {outcome.before:.2f} {unit}",
            unknown_note(problem.target),
        ),
        view.panel(
            x,
            f"Repaired: mean error {outcome.after:.2f} {unit}",
            f"{outcome.scene.baseline} instead: {outcome.baseline:.2f} {unit}",
        ),
        view.error_panel(x, problem.truth),
    ]
    if problem.extra_panel is not None:
        panels.append(problem.extra_panel(x))
    title = f"{outcome.scene.name}: {outcome.scene.description}"
    sheets.sheet(title, panels).save(outcome.file)


def size_and_steps(outcome: Outcome) -> tuple[str, str]:
    """Return the vertices and the steps of a single solve, as text for the table."""
    info = outcome.info
    if info is None:
        return "", ""
    steps = f"{info.iterations}{outcome.scene.step_unit}"
    if not (info.converged or outcome.scene.step_unit):
        steps += ", not converged"
    return f"{info.n_vertices:,}", steps


def print_summary(outcomes: Sequence[Outcome], console: "Console") -> None:
    """Print a table of the errors, and the paths of the pictures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title="Mean errors", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("scene")
    for name in ("pixels", "vertices", "steps", "time", "spoiled", "usual method", "solver"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        vertices, steps = size_and_steps(outcome)
        table.add_row(
            outcome.scene.name,
            f"{outcome.pixels:,}",
            vertices,
            steps,
            f"{outcome.seconds:.2f} s",
            f"{outcome.before:.2f}",
            f"{outcome.baseline:.2f} {outcome.scene.baseline}",
            f"[bold]{outcome.after:.2f}[/bold] {outcome.unit}",
        )
    console.print(table)
    console.print("Spoiled: unknown disparities count as the mean of the known ones.\n")
    for outcome in outcomes:
        _print_path(console, outcome.scene.name, outcome.file)


def run_all(scenes: Sequence[Scene], output: Path) -> list[Outcome]:
    """Run scenes with a progress bar, and print a summary at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    from bilateral.cli.display import sheets

    console = Console()
    if not console.is_terminal:
        console.width = 100  # a file or a pipe has no width
    columns = (SpinnerColumn(), BarColumn(20), TextColumn("{task.description}"))
    outcomes = []
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=len(scenes))
        for scene in scenes:

            def show_step(step: int, residual: float, name: str = scene.name) -> None:
                text = f"{name}: step {step}, estimated error {residual:.0e}"
                bar.update(task, description=text)

            bar.update(task, description=f"{scene.name}: preparing")
            outcomes.append(run(scene, output, show_step))
            bar.advance(task)
    print_summary(outcomes, console)
    if len(outcomes) > 1:
        file = output / CONTACT_SHEET
        sheets.contact_sheet([outcome.file for outcome in outcomes]).save(file)
        _print_path(console, "all", file)
    return outcomes


def main(output: Path, only: Sequence[str] = (), list_scenes: bool = False) -> int:
    """Run the scenes named in `only`, or all; return the exit code."""
    names = [scene.name for scene in SCENES]
    if list_scenes:
        for scene in SCENES:
            print(f"{scene.name:8} {scene.description}")
        return 0
    for name in only:
        if name not in names:
            raise UsageError(f"--scene: expected one of {', '.join(names)}, got {name!r}.")
    missing = [name for name in ("rich", "skimage") if importlib.util.find_spec(name) is None]
    if missing:
        print_message(f'the demo needs {" and ".join(missing)}: pip install "bilateral[demo]"')
        return FAILED
    try:
        run_all([scene for scene in SCENES if scene.name in (only or names)], output)
    except OSError as error:
        print_message(f"cannot write the pictures: {error}")
        return FAILED
    return 0


def _print_path(console: "Console", name: str, file: Path) -> None:
    console.print(f"{name:>8}  {file}", soft_wrap=True, highlight=False, markup=False)
