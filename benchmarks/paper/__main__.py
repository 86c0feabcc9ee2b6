"""The one command: ``python -m benchmarks.paper [--data DIR]``, from the repository's root."""

import argparse
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks import machine
from benchmarks.depth.peers import OPENCV
from benchmarks.paper import (
    colorization,
    convergence,
    gallery,
    interval,
    layer,
    lowrank,
    report,
    segmentation,
    speed,
    stereo,
    superres,
)
from benchmarks.paper.cache import Cache
from benchmarks.paper.cells import Cell, Setting
from benchmarks.paper.data import Data
from benchmarks.worker import probe

EXPERIMENTS: tuple[ModuleType, ...] = (
    convergence,
    speed,
    interval,
    stereo,
    superres,
    colorization,
    segmentation,
    lowrank,
    layer,
    gallery,
)
PUBLISHED, ELSEWHERE = Path("docs/results"), Path("benchmark-results/paper-results")


def main() -> None:
    given = options()
    data = Data(given.data)
    if data.guide():
        print(data.guide(), end="\n\n", flush=True)
    opencv = probe(given.opencv_python, OPENCV)
    if opencv is None:
        print(
            f"OpenCV skipped: {given.opencv_python} has no cv2 with ximgproc. On Debian and "
            "Ubuntu: apt-get install python3-opencv.\n",
            flush=True,
        )
    setting = Setting(
        data,
        given.quick,
        given.repeats,
        given.opencv_python if opencv else None,
        opencv or {},
        (1, 2) if machine.cores() >= 2 else (1,),
    )
    chosen = [module for module in EXPERIMENTS if module.NAME in given.only]
    run(chosen, setting, Cache(given.cache, setting), given.output)


def options() -> argparse.Namespace:
    names = [module.NAME for module in EXPERIMENTS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description="Measure the paper's tables and figures again, beside its own numbers and "
        "peers. A run that was ended goes on where it stopped.",
    )
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="the public data sets; without it, stand-ins")
    add(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"where to write pages, figures and JSON ({PUBLISHED}; without --data or with "
        f"--quick, {ELSEWHERE})",
    )
    add(
        "--cache",
        type=Path,
        metavar="DIR",
        default=Path("benchmark-results/paper"),
        help="where finished cells are kept (%(default)s)",
    )
    add("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    add("--repeats", type=int, metavar="N", default=5, help="of what is timed (%(default)s)")
    add("--quick", action="store_true", help="one repeat of small pictures")
    add(
        "--opencv-python",
        metavar="PYTHON",
        default="/usr/bin/python3",
        help="a Python whose cv2 has ximgproc (%(default)s)",
    )
    given = parser.parse_args()
    if given.repeats < 1:
        parser.error(f"--repeats: expected at least 1, got {given.repeats}.")
    if given.data is not None and not given.data.is_dir():
        parser.error(f"--data: expected a folder, got {given.data}.")
    if given.output is None:  # what is published is of whole runs on the real data
        given.output = ELSEWHERE if given.quick or given.data is None else PUBLISHED
    if given.quick:
        given.repeats = 1
    return given


def run(chosen: list[ModuleType], setting: Setting, cache: Cache, folder: Path) -> None:
    """Measure, print and write, experiment by experiment."""
    began = time.perf_counter()
    plan = {module.NAME: list(module.cells(setting)) for module in chosen}
    with _progress() as progress:
        task = progress.add_task("", total=sum(map(len, plan.values())))
        for module in chosen:
            kept = {}
            for cell in plan[module.NAME]:
                progress.update(task, description=f"{module.NAME}: {cell.name}")
                kept[cell.name] = _measured(module, cell, cache, progress)
                progress.advance(task)
            print(_written(module, kept, setting, folder), flush=True)
    report.index(EXPERIMENTS, folder)
    print(f"Written to {folder} in {time.perf_counter() - began:.0f} s.")


def _progress() -> Progress:
    """On standard error, so that the tables can be piped."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _measured(module: ModuleType, cell: Cell, cache: Cache, progress: Progress) -> dict[str, Any]:
    found = cache.get(module, cell)
    made = found or cache.measure(module, cell)
    if not progress.console.is_terminal:
        how = "kept" if found else f"{made['seconds']:.1f} s"
        print(f"{module.NAME}: {cell.name}: {how}", file=sys.stderr, flush=True)
    return made


def _written(
    module: ModuleType, kept: dict[str, dict[str, Any]], setting: Setting, folder: Path
) -> str:
    values = {name: cell["value"] for name, cell in kept.items()}
    results = module.summary(values, setting)
    stood_in = module.DATA is not None and setting.data.folder(module.DATA) is None
    about = report.circumstances(kept.values(), setting, stood_in)
    text = report.write(module, about, results, folder)
    if values:
        module.draw(values, results, folder)
    return text


if __name__ == "__main__":
    main()
