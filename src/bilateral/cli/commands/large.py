"""Solve files that do not fit into memory, a few rows at a time, with the bits of a plain solve."""

import ctypes
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import streaming
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.display.console import is_interactive, print_message, write_stdout
from bilateral.cli.display.stages import StageProgress
from bilateral.cli.errors import UsageError
from bilateral.cli.files import outputs
from bilateral.cli.files.output_plan import OutputPlan
from bilateral.cli.files.units import Units
from bilateral.cli.record import Record
from bilateral.io import large
from bilateral.io.errors import AlreadyExistsError
from bilateral.io.messages import printable
from bilateral.numerics.blocks import BYTES_PER_VERTEX, BlockOptions, Layout
from bilateral.numerics.options import GridOptions, SolveOptions

Array = NDArray[Any]

_DEFAULT_MEMORY = 2_000_000_000
_SMALL_FILE = 50_000_000
"""Files below this size are not opened to find out how large they are unpacked."""
_SOLVE_SHARE = 0.15
"""About the time of the solve, as a part of the time of both passes."""
_M_MMAP_THRESHOLD = -3
"""glibc, malloc.h"""
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def parse_memory(text: str | None) -> int | None:
    """Return a number of bytes such as 2GB or 500M."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([kmgt]?)i?b?", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"--memory: expected a size such as 2GB or 500MB, got {text!r}.")
    return int(float(match[1]) * _UNITS[match[2]])


@dataclass(frozen=True)
class LargeSolve:
    """One solve of large files: its options, and the sizes of its inputs."""

    paths: Mapping[str, str]
    memory: int
    arguments: Mapping[str, Any]
    """Arguments of `bilateral.solve`."""
    units: Units
    page: int | None

    def run(self, common: CommonOptions) -> int:
        """Solve and write the result; return the exit code."""
        began, output = time.perf_counter(), Path(common.output)
        self._check(common, output)
        if output.exists() and common.skip_existing:
            return 0
        if output.exists() and not common.force:
            raise AlreadyExistsError(printable(output))
        outputs.make_folder(output.parent)
        with ExitStack() as stack:
            readers = {}
            for name, path in self.paths.items():
                readers[name] = large.open_rows(path, self.page)
                stack.callback(readers[name].close)
            info = self._solve(stack, readers, common, output)
        seconds = time.perf_counter() - began
        target = readers["target"]
        record = Record(self.paths["target"], str(output), seconds=seconds)
        record.shape, record.n_vertices = list(target.shape), info.n_vertices
        record.dtype = str(outputs.output_dtype(target.dtype, common.dtype, output.suffix))
        if common.json:
            write_stdout(record.to_json() + "\n")
        if is_interactive(common.quiet):
            print_message(
                f"{printable(output)}: {info.n_vertices:,} vertices, {info.iterations} steps, "
                f"{seconds:.1f} s"
            )
        return 0

    def _check(self, common: CommonOptions, output: Path) -> None:
        for option in ("preview", "report", "truth"):
            if getattr(common, option):
                raise UsageError(f"--{option}: is not for files that are larger than memory.")
        if common.output == outputs.STDOUT or not large.can_stream(output):
            raise UsageError(
                f"--output: expected a name that ends with one of {', '.join(large.SUFFIXES)} for "
                f"files that are larger than memory, got {printable(common.output)}."
            )
        for name, expected in (("smoothness", "a number"), ("sigma_t", None), ("smooth", None)):
            value = self.arguments[name]
            if isinstance(value, str) or (expected is None and value is not None):
                raise UsageError(
                    f"--{name.replace('_', '-')}: expected {expected or 'no such option'} for "
                    f"files that are larger than memory."
                )
        files = OutputPlan(stdout=common.json)
        for path in self.paths.values():
            files.add_input(Path(path))
        files.add_output(output, "the result")

    def _solve(
        self,
        stack: ExitStack,
        readers: Mapping[str, large.RowReader],
        common: CommonOptions,
        output: Path,
    ) -> bilateral.SolveInfo:
        reference, target = readers["reference"], readers["target"]
        height, width = reference.shape[:2]
        for name, reader in readers.items():
            if reader.shape[:2] != (height, width):
                raise UsageError(
                    f"{printable(self.paths[name])}: expected the size of the photograph, "
                    f"{width} x {height}, got {reader.shape[1]} x {reader.shape[0]}."
                )
        channels = _photo_channels(reference.shape)
        options = BlockOptions(
            Layout((height, width), float(self.arguments["sigma_xy"])),
            GridOptions.checked(self.arguments, 2 + channels),
            SolveOptions.checked_with_method(
                {"model": "constant", "preconditioner": "multigrid", "initial": None}
                | dict(self.arguments)
            ),
            self.units.working_dtype(np.empty(0, target.dtype)),
        )
        strip_rows = self._strip_rows(readers.values(), width)
        solve_rows = int(_SOLVE_SHARE * 2 * height)
        progress = stack.enter_context(StageProgress(2 * height + solve_rows, common.quiet))
        scratch = tempfile.TemporaryFile(dir=output.parent, prefix=".bilateral-")  # noqa: SIM115
        stack.enter_context(scratch)
        job = streaming.StreamedSolve(
            lambda start, stop: self._read(readers, start, stop),
            scratch,
            options,
            strip_rows,
            progress.advance,
        )
        progress.start("reading")
        job.build()
        _return_memory()
        self._announce(job.n_vertices)
        progress.start("solving")
        info = job.solve(float(self.arguments["smoothness"]))
        progress.advance(solve_rows)
        progress.start("writing")
        dtype = outputs.output_dtype(target.dtype, common.dtype, output.suffix)
        writer = large.create(output, target.shape, dtype, target.zarr_format)
        writer.write(
            (self.units.to_file(rows, dtype) for rows in job.rows()), overwrite=common.force
        )
        return info

    def _strip_rows(self, readers: Any, width: int) -> int:
        """Return how many rows a strip may have: about a quarter of the memory, in whole tiles.

        Strips that cut tiles take more memory and time: a tile is kept for the next strip.
        """
        rows = self.memory // 4 // (streaming.BYTES_PER_PIXEL * width)
        step = max(reader.row_step for reader in readers)
        tiles = (2 * rows + step) // (2 * step)
        return max(1, tiles * step or rows)

    def _announce(self, n_vertices: int) -> None:
        needed = n_vertices * BYTES_PER_VERTEX
        if needed > self.memory:
            print_message(
                f"the solve for {n_vertices:,} vertices takes up to {_size(needed)}, more "
                f"than --memory allows; larger cells (--sigma-xy, --sigma-luma) take less."
            )

    def _read(
        self, readers: Mapping[str, large.RowReader], start: int, stop: int
    ) -> streaming.Strip:
        photo = readers["reference"].rows(start, stop)
        if photo.ndim == 3 and photo.shape[-1] in (2, 4):
            photo = photo[..., :-1]
        confidence = None
        if "confidence" in readers:
            confidence = readers["confidence"].rows(start, stop)
            confidence = confidence[..., 0] if confidence.ndim == 3 else confidence
        target = self.units.from_file(readers["target"].rows(start, stop))
        return streaming.Strip(photo, target, confidence)


def _return_memory() -> None:
    """Return freed memory to the system, from now on at once: glibc keeps that of the strips."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for name, arguments in (("mallopt", (_M_MMAP_THRESHOLD, 1_000_000)), ("malloc_trim", (0,))):
        function = getattr(libc, name, None)  # other C libraries have neither
        if function is not None:
            function(*arguments)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{max(1, round(n_bytes / 1e6))} MB"


def _photo_channels(shape: tuple[int, ...]) -> int:
    """Return the channels of a photograph without alpha."""
    return 1 if len(shape) == 2 or shape[2] <= 2 else 3


def large_solve(
    inputs: Mapping[str, str | None],
    memory: str | None,
    arguments: Mapping[str, Any],
    units: Units,
    common: CommonOptions,
) -> Callable[[CommonOptions], int] | None:
    """Return the function that solves in rows, or None if the files fit into memory."""
    limit = parse_memory(memory)
    paths = {name: path for name, path in inputs.items() if path is not None}
    if not all(large.can_stream(path) and os.path.exists(path) for path in paths.values()):
        return None
    names = [*paths.values(), common.output]
    is_zarr = any(large.suffix_of(name) == ".zarr" for name in names)
    if not is_zarr and (limit is None and max(map(os.path.getsize, paths.values())) < _SMALL_FILE):
        return None
    if not is_zarr and not _exceeds(paths, common.page, limit, common.limit * 1_000_000):
        return None
    job = LargeSolve(paths, limit or _DEFAULT_MEMORY, arguments, units, common.page)
    return job.run


def _exceeds(
    paths: Mapping[str, str], page: int | None, memory: int | None, file_limit: int
) -> bool:
    """Whether an input exceeds the limit of one file, or the solve exceeds the memory."""
    sizes, pixels = [], 0
    for path in paths.values():
        reader = large.open_rows(path, page)
        sizes.append(prod(reader.shape) * reader.dtype.itemsize)
        pixels = max(pixels, prod(reader.shape[:2]))
        reader.close()
    if memory is None:
        return max(sizes) > file_limit
    return sum(sizes) + 16 * pixels > memory
