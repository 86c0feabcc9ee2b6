"""Finished cells, kept by what they depend on: a run that was ended goes on where it stopped."""

import ast
import datetime
import hashlib
import importlib.util
import json
import os
import pickle
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import bilateral
from benchmarks.machine import Others
from benchmarks.paper.cells import Cell, Setting

Kept = dict[str, Any]

_LOOKS = ("benchmarks.paper.figures", "benchmarks.tables")
"""What shows values and makes none."""


class Cache:
    """A folder with a file per cell.

    A cell is measured again when the installed library changes, or the experiment's file, or what
    of `benchmarks` that imports, or a file of data that the cell reads, or the options of the run.
    """

    def __init__(self, folder: Path, setting: Setting) -> None:
        self._folder = folder
        self._setting = [
            setting.quick,
            setting.repeats,
            setting.python is not None,
            setting.opencv,
            setting.threads,
        ]

    def get(self, module: ModuleType, cell: Cell) -> Kept | None:
        try:
            with self._file(module, cell).open("rb") as file:
                kept: Kept = pickle.load(file)
        except FileNotFoundError:
            return None
        return kept

    def measure(self, module: ModuleType, cell: Cell) -> Kept:
        """Do a cell's work and keep it, with when, how long, and what else kept cores busy."""
        others = Others(_cpu_seconds)
        began = datetime.datetime.now(datetime.UTC)
        value = cell.work()
        seconds = (datetime.datetime.now(datetime.UTC) - began).total_seconds()
        kept = {
            "value": value,
            "date": began.isoformat(timespec="seconds"),
            "seconds": seconds,
            "other_work": others.cores(),
        }
        file = self._file(module, cell)
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}")
        half.write_bytes(pickle.dumps(kept))
        half.replace(file)
        return kept

    def _file(self, module: ModuleType, cell: Cell) -> Path:
        depends = [
            cell.name,
            cell.depends,
            _library(),
            _files(sources(module)),
            _files(cell.inputs),
            self._setting,
        ]
        key = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
        return self._folder / module.NAME / f"{key[:32]}.pickle"


@cache
def sources(module: ModuleType) -> tuple[Path, ...]:
    """A module's file, and those of `benchmarks` that it imports to measure, directly or not."""
    found: dict[str, Path] = {}
    todo = [module.__name__]
    while todo:
        name = todo.pop()
        known = name in found or name in _LOOKS
        spec = None if known else importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        found[name] = Path(spec.origin)
        todo += [*_imports(found[name]), name.rpartition(".")[0] or name]
    # scripts for other Pythons are run, not imported
    workers = {script for file in found.values() for script in file.parent.glob("*_worker.py")}
    return tuple(sorted({*found.values(), *workers}))


def _imports(file: Path) -> list[str]:
    """The modules of `benchmarks` that a file names in its imports."""
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("benchmarks.") and _is_module(name)]


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a name inside a module
        return False


@cache
def _library() -> str:
    """The hash of the installed library, compiled parts and all."""
    folder = Path(bilateral.__file__).parent
    kinds = (".py", ".so", ".pyd")
    return _files(tuple(sorted(p for p in folder.rglob("*") if p.suffix in kinds)))


@cache
def _files(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    return sum(os.times()[:4])
