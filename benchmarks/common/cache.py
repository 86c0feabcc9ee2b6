"""Cache measured cells by all they depend on: an interrupted run resumes where it stopped."""

import datetime
import hashlib
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
from benchmarks.common.timing import clock

Entry = dict[str, Any]


class Cache:
    """A folder with a file per cell.

    A cell is measured again when the library or the benchmarks change, or a data file that the
    cell reads, or the options of the run.
    """

    def __init__(self, folder: Path, setting: Setting) -> None:
        self._folder = folder
        run = setting.quick, setting.repeats, setting.python is not None
        self._options = [*run, setting.opencv, setting.threads]

    def get(self, module: ModuleType, cell: Cell) -> Entry | None:
        file = self._file(module, cell)
        entry: Entry | None = pickle.loads(file.read_bytes()) if file.exists() else None
        return entry

    def measure(self, module: ModuleType, cell: Cell) -> Entry:
        """Measure a cell, and keep its value with the date, the seconds and the other work."""
        others = Others(lambda: sum(os.times()[:4]))  # with finished processes that it started
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        seconds, value = clock(cell.work)
        entry = {"value": value, "date": date, "seconds": seconds, "other_work": others.cores()}
        file = self._file(module, cell)
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(entry))
        unfinished.replace(file)
        return entry

    def _file(self, module: ModuleType, cell: Cell) -> Path:
        depends = [cell.name, cell.depends, _code(), _files(cell.inputs), self._options]
        key = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
        return self._folder / module.NAME / f"{key[:32]}.pickle"


@cache
def _code() -> str:
    folders = Path(__file__).parents[1], Path(bilateral.__file__).parent
    files = [file for folder in folders for file in folder.rglob("*")]
    return _files(tuple(sorted(file for file in files if file.suffix in (".py", ".so", ".pyd"))))


@cache
def _files(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
