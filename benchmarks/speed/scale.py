"""Solve files of growing size in strips of rows: time and memory against pixels and vertices."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.common import photos
from benchmarks.common.cells import Setting
from benchmarks.common.tables import at_most, bullets, page, table
from benchmarks.common.timing import clock
from bilateral.io import large

Array = NDArray[Any]

TITLE, REPEATS = "Files larger than memory", 1
SIZES = ((2000, 2000), (4000, 4000), (8000, 8000), (16000, 16000), (25000, 40000))
QUICK_SIZES = ((300, 400), (600, 800))
SIGMA_XY, MEMORY, STRIP = 16, "2GB", 512
IN_MEMORY = 64_000_000
"""Pixels of the largest image that is also solved in memory."""
TARGETS = {"memory_mb_at_most": 3000.0, "times_of_memory_at_most": 2.0}


def measure(setting: Setting) -> dict[str, Any]:
    photo = next(photos.photographs(setting.data.photographs())).pixels
    rows = []
    for shape in QUICK_SIZES if setting.quick else SIZES:
        with tempfile.TemporaryDirectory(dir=setting.output.parent) as name:
            rows.append(measure_size(Path(name), photo, shape))
    return {"targets": TARGETS, "sizes": rows}


def measure_size(folder: Path, photo: Array, shape: tuple[int, int]) -> dict[str, Any]:
    """Write the files of one size, solve them in rows, and in memory if they are small."""
    paths = {name: folder / f"{name}.tif" for name in ("photo", "target", "out")}
    large.create(paths["photo"], (*shape, 3), np.uint8).write(
        pictures(photo, shape), overwrite=True
    )
    targets = (noisy(strip, i) for i, strip in enumerate(pictures(photo, shape)))
    large.create(paths["target"], shape, np.float32).write(targets, overwrite=True)
    read = sum(clock(read_all, paths[name])[0] for name in ("photo", "target"))
    seconds, memory, vertices = solve_file(paths)
    pixels = shape[0] * shape[1]
    row: dict[str, Any] = {
        "megapixels": pixels / 1e6,
        "vertices": vertices,
        "seconds": seconds,
        "memory_mb": memory / 1e6,
        "read": read,
        "write": write_seconds(paths["out"], folder / "copy.tif"),
    }
    if pixels <= IN_MEMORY:
        given = read_all(paths["photo"]), read_all(paths["target"])
        row["in_memory"], x = clock(bilateral.solve, *given, sigma_xy=SIGMA_XY)
        row["same_bits"] = x.tobytes() == read_all(paths["out"]).tobytes()
    row["alone"] = row["seconds"] - row["read"] - row["write"]
    row["ns_per_pixel"] = 1e9 * row["alone"] / pixels
    return row


def pictures(photo: Array, shape: tuple[int, int]) -> Iterator[Array]:
    """Yield strips of a mosaic of mirrored copies of a photograph."""
    height, width = photo.shape[:2]
    columns = mirrored(np.arange(shape[1]), width)
    for y in range(0, shape[0], STRIP):
        rows = mirrored(np.arange(y, min(y + STRIP, shape[0])), height)
        yield photo[rows][:, columns]


def mirrored(index: Array, length: int) -> Array:
    at = index % (2 * length)
    return np.where(at < length, at, 2 * length - 1 - at)


def noisy(strip: Array, seed: int) -> Array:
    """Make a target of the green channel: noise, and one unknown pixel in ten."""
    rng = np.random.default_rng(seed)
    values = strip[..., 1] + rng.standard_normal(strip.shape[:2], np.float32) * np.float32(10)
    values[rng.random(values.shape, np.float32) < 0.1] = np.nan
    return values.astype(np.float32)


def strips(path: Path) -> Iterator[Array]:
    reader = large.open_rows(path)
    for y in range(0, reader.shape[0], STRIP):
        yield reader.rows(y, min(y + STRIP, reader.shape[0]))
    reader.close()


def read_all(path: Path) -> Array:
    return np.concatenate(list(strips(path)))


def write_seconds(path: Path, copy: Path) -> float:
    """Return the time that writing a file takes: that of a copy, without that of reading."""
    reader = large.open_rows(path)
    shape, dtype = reader.shape, reader.dtype
    reader.close()
    reading = clock(lambda: [None for _ in strips(path)])[0]
    writer = large.create(copy, shape, dtype)
    return max(0.0, clock(writer.write, strips(path), overwrite=True)[0] - reading)


def solve_file(paths: dict[str, Path]) -> tuple[float, float, int]:
    """Solve in a process of its own; return seconds, peak memory in bytes and vertices."""
    command = [sys.executable, "-m", "bilateral", "solve", paths["photo"], paths["target"]]
    # Little memory for small files, which would be solved in memory otherwise.
    memory = "1MB" if os.path.getsize(paths["photo"]) < 1e8 else MEMORY
    command += ["-o", paths["out"], "--sigma-xy", SIGMA_XY, "--memory", memory, "--json", "-q"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
    assert process.stdout is not None
    record = json.loads(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return record["seconds"], used.ru_maxrss * 1024, record["n_vertices"]


def as_text(results: dict[str, Any]) -> str:
    rows = results["sizes"]
    last = rows[-1]
    in_memory = [row for row in rows if "in_memory" in row]
    base = in_memory[-1]["in_memory"] / in_memory[-1]["megapixels"]
    ratio = last["alone"] / last["megapixels"] / base
    return page(
        f"RGB and float32, cells of {SIGMA_XY} pixels, tiled BigTIFF; seconds with reading and "
        f"writing, and both measured alone.",
        table(
            rows,
            "megapixels | {megapixels:.1f}; vertices | {vertices:,}; seconds | {seconds:.1f}",
            "reading | {read:.1f}; writing | {write:.1f}; rest, ns per pixel | {ns_per_pixel:.0f}",
            "MB | {memory_mb:.0f}; in memory, s | {in_memory:.2f}; same bits | {same_bits}",
        ),
        bullets(
            "## Targets",
            [
                f"MB of memory: {at_most(last['memory_mb'], TARGETS['memory_mb_at_most'], '.0f')}",
                f"time per pixel, in those of the largest solve in memory: "
                f"{at_most(ratio, TARGETS['times_of_memory_at_most'])}",
            ],
        ),
    )
