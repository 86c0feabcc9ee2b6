"""Cache measured cells by all they depend on: an interrupted run resumes where it stopped."""

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
from benchmarks.common.cells import Cell, Setting
from benchmarks.common.machine import Others

Entry = dict[str, Any]

_PRESENTATION = ("benchmarks.paper.figures", "benchmarks.common.tables")
"""Modules that show values and do not change them."""


class Cache:
    """A folder with a file per cell.

    A cell is measured again when the installed library changes, or the experiment's file, or a
    module of `benchmarks` that the file imports, or a data file that the cell reads, or the
    options of the run.
    """

    def __init__(self, folder: Path, setting: Setting) -> None:
        self._folder = folder
        python = setting.python is not None
        options = setting.quick, setting.repeats, python, setting.opencv, setting.threads
        self._options = list(options)

    def get(self, module: ModuleType, cell: Cell) -> Entry | None:
        try:
            with self._file(module, cell).open("rb") as file:
                entry: Entry = pickle.load(file)
        except FileNotFoundError:
            return None
        return entry

    def measure(self, module: ModuleType, cell: Cell) -> Entry:
        """Measure a cell, and keep its value with the date, the seconds and the other work."""
        others = Others(_cpu_seconds)
        began = datetime.datetime.now(datetime.UTC)
        value = cell.work()
        seconds = (datetime.datetime.now(datetime.UTC) - began).total_seconds()
        entry = {
            "value": value,
            "date": began.isoformat(timespec="seconds"),
            "seconds": seconds,
            "other_work": others.cores(),
        }
        file = self._file(module, cell)
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(entry))
        unfinished.replace(file)
        return entry

    def _file(self, module: ModuleType, cell: Cell) -> Path:
        depends = [cell.name, cell.depends, _library(), _files(sources(module))]
        depends += [_files(cell.inputs), self._options]
        key = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
        return self._folder / module.NAME / f"{key[:32]}.pickle"


@cache
def sources(module: ModuleType) -> tuple[Path, ...]:
    """Files of a module and of the modules of `benchmarks` that it imports, directly or not."""
    files: dict[str, Path] = {}
    todo = [module.__name__]
    while todo:
        name = todo.pop()
        ignored = name in files or name in _PRESENTATION
        spec = None if ignored else importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        files[name] = Path(spec.origin)
        todo += [*_imports(files[name]), name.rpartition(".")[0] or name]
    # scripts for other Pythons are run, not imported
    scripts = {script for file in files.values() for script in file.parent.glob("*_worker.py")}
    return tuple(sorted({*files.values(), *scripts}))


def _imports(file: Path) -> list[str]:
    """The modules of `benchmarks` that a file imports."""
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
    """The hash of the installed library with its compiled parts."""
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
    """CPU seconds of this process and of the finished processes that it started."""
    return sum(os.times()[:4])
