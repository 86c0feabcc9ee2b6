"""Run a benchmark from the command line: options, measurement, report, files.

A benchmark is a module with a TITLE, the default number of REPEATS, the names of its
PARTS for ``--only`` if it has parts, PEERS if it takes the originals by ``--peers`` and, where it
has OpenCV as a peer, the worker's call that it needs as OPENCV. It has either `measure(setting)`
and `as_text(results)`, or is an experiment of the paper (see `cells`) with `details(values)`: the
sections that the paper's page does not have.
"""

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.common import machine, opencv
from benchmarks.common.cells import Setting
from benchmarks.common.data import Data
from benchmarks.common.tables import as_json, page

Results = dict[str, Any]


def main(name: str, module: ModuleType, arguments: list[str]) -> None:
    options = parse(parser(name, module), arguments)
    reason = module.skipped() if hasattr(module, "skipped") else None
    if reason:
        print(reason)
        return
    setting, about = prepare(module, options)
    if hasattr(module, "measure"):
        results = module.measure(setting)
        text = module.as_text(results)
    else:
        values = {}
        for cell in module.cells(setting):
            say(cell.name)
            values[cell.name] = cell.work()
        results = {"values": values, "results": module.summary(values, setting)}
        first = module.as_text(json.loads(as_json(results["results"])))
        text = page(first, module.details(values))
    title = f"# {module.TITLE}\n\n{machine.describe(about)}."
    write(name, about | results, page(title, about["opencv_skipped"], text), options.output)


def parser(name: str, module: ModuleType) -> argparse.ArgumentParser:
    assert module.__doc__ is not None
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__.partition("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    data = "photographs (*.jpg, *.png), or a folder of the public data sets (see "
    data += "docs/notes/paper.md); without it, scikit-image's pictures and made scenes"
    folder, report = Path("benchmark-results"), "where to write the report and its JSON"
    count = "measurements after a warm-up"
    made.add_argument("--data", type=Path, metavar="DIR", help=data)
    made.add_argument("--output", type=Path, metavar="DIR", default=folder, help=report)
    made.add_argument("--repeats", type=int, metavar="N", default=module.REPEATS, help=count)
    made.add_argument("--quick", action="store_true", help="few repeats on small images")
    if hasattr(module, "PARTS"):
        parts = {"nargs": "+", "choices": module.PARTS, "metavar": "PART"}
        made.add_argument("--only", **parts, help=f"measure only these: {', '.join(module.PARTS)}")
    if hasattr(module, "PEERS"):
        originals = "folder of the originals, which are not part of the project"
        made.add_argument("--peers", type=Path, metavar="DIR", help=originals)
    if hasattr(module, "OPENCV"):
        needs, python = f"a Python whose cv2 has this: {module.OPENCV}", "/usr/bin/python3"
        made.add_argument("--opencv-python", metavar="PYTHON", default=python, help=needs)
    return made


def parse(made: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    options = made.parse_args(arguments)
    if options.repeats < 1:
        made.error(f"--repeats: expected at least 1, got {options.repeats}.")
    if options.data is not None and not options.data.is_dir():
        made.error(f"--data: expected a folder, got {options.data}.")
    peers = getattr(options, "peers", None)
    if peers is not None and not peers.is_dir():
        made.error(f"--peers: expected a folder, got {peers}.")
    return options


def prepare(
    module: ModuleType, options: argparse.Namespace, paper: bool = False
) -> tuple[Setting, Results]:
    """Look for OpenCV, and describe when, where and with what is measured."""
    python = getattr(options, "opencv_python", None)
    versions = opencv.probe(python, module.OPENCV) if python else None
    reason = opencv.skipped(python, module.OPENCV) if python and not versions else None
    if reason:
        say(reason)
    setting = Setting(
        data=Data(options.data),
        quick=options.quick,
        repeats=1 if options.quick else options.repeats,
        python=python if versions else None,
        opencv=versions or {},
        threads=machine.thread_counts(),
        any_python=python,
        paper=paper,
        output=options.output,
        peers=getattr(options, "peers", None),
        only=tuple(getattr(options, "only", None) or ()),
    )
    return setting, {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **machine.about(versions or {}),
        "load_before": os.getloadavg()[0],
        "opencv_skipped": reason,
        "settings": {key: getattr(setting, key) for key in ("repeats", "quick", "threads")},
    }


def write(name: str, results: Results, text: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(as_json(results))
    (folder / f"{name}.md").write_text(f"{text}\n")
    print(f"{text}\n\nWritten: {folder / name}.json, {folder / name}.md")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
