"""Measure the paper's tables and figures again, beside its own numbers and peers.

Cells that are measured already are cached: an interrupted run resumes where it stopped.
"""

import time
from pathlib import Path
from types import ModuleType
from typing import Any

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
    for module in chosen:
        entries: dict[str, dict[str, Any]] = {}
        for i, cell in enumerate(plan[module.NAME], 1):
            cached = cache.get(module, cell)
            entries[cell.name] = entry = cached or cache.measure(module, cell)
            how = "cached" if cached else f"{entry['seconds']:.1f} s"
            # On standard error, so that the tables can be piped.
            command.say(f"{module.NAME} {i}/{len(plan[module.NAME])}: {cell.name}: {how}")
        print(report.write(module, entries, setting, folder), flush=True)
    report.index(EXPERIMENTS, folder)
    print(f"Written to {folder} in {time.perf_counter() - began:.0f} s.")
