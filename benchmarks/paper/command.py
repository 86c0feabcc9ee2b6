"""Measure the paper's tables and figures again, beside its own numbers and peers.

Cells that are measured already are cached: an interrupted run resumes where it stopped.
"""

import time
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.common import command
from benchmarks.common.cache import Cache
from benchmarks.common.cells import Setting
from benchmarks.paper import convergence, gallery, interval, report
from benchmarks.quality import colorization, depth, lowrank, segmentation, superres
from benchmarks.speed import bench as speed
from benchmarks.speed import layer

REPEATS = 5
OPENCV = "guided filter"
EXPERIMENTS: tuple[ModuleType, ...] = (
    *(convergence, speed, interval, depth, superres),
    *(colorization, segmentation, lowrank, layer, gallery),
)
PUBLISHED, ELSEWHERE = Path("docs/results"), Path("benchmark-results/paper-results")


def main(name: str, module: ModuleType, arguments: list[str]) -> None:
    names = [experiment.NAME for experiment in EXPERIMENTS]
    parser = command.parser(name, module)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    cache = Path("benchmark-results/paper")
    parser.add_argument("--cache", type=Path, metavar="DIR", default=cache)
    # Only whole runs on the real data are published.
    parser.set_defaults(output=None)
    options = command.parse(parser, arguments)
    folder = ELSEWHERE if options.quick or options.data is None else PUBLISHED
    setting, about = command.prepare(module, options, paper=True)
    for text in (setting.data.guide(), about["opencv_skipped"]):
        if text:
            print(text, end="\n\n", flush=True)
    chosen = [experiment for experiment in EXPERIMENTS if experiment.NAME in options.only]
    run(chosen, setting, Cache(options.cache, setting), options.output or folder)


def run(chosen: list[ModuleType], setting: Setting, cache: Cache, folder: Path) -> None:
    """Measure, print and write, experiment by experiment."""
    began = time.perf_counter()
    plan = {module.NAME: list(module.cells(setting)) for module in chosen}
    columns = MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    # On standard error, so that the tables can be piped.
    console = Console(stderr=True)
    with Progress(*Progress.get_default_columns()[:2], *columns, console=console) as progress:
        task = progress.add_task("", total=sum(map(len, plan.values())))
        for module in chosen:
            entries: dict[str, dict[str, Any]] = {}
            for cell in plan[module.NAME]:
                name = f"{module.NAME}: {cell.name}"
                progress.update(task, description=name)
                cached = cache.get(module, cell)
                entries[cell.name] = entry = cached or cache.measure(module, cell)
                progress.advance(task)
                if not console.is_terminal:
                    command.say(
                        f"{name}: cached" if cached else f"{name}: {entry['seconds']:.1f} s"
                    )
            print(report.write(module, entries, setting, folder), flush=True)
    report.index(EXPERIMENTS, folder)
    print(f"Written to {folder} in {time.perf_counter() - began:.0f} s.")
