"""Compare `bilateral.compat` with the originals of TokenCut, FOUND and the authors' notebook.

Each picture has processes of its own, in which ours and theirs take turns, with as many repeats.
Times are CPU times of all threads. The calls with a path read the file, theirs as ours. Threads of
OpenBLAS that wait for work count, too, and a part of the originals' time may be theirs: so a second
process gives OpenBLAS and this library one thread each.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy import ndimage

from benchmarks.common import Array, machine, photos
from benchmarks.common.cells import Setting
from benchmarks.common.tables import at_least, at_most, bullets, page, table
from benchmarks.common.timing import geometric_mean, in_turns
from benchmarks.compat import peers

TITLE, REPEATS, PEERS = "Drop-ins against their originals", 7, True

PICTURES = (
    "segmentation/convcrf_voc/*_0img.png",
    "segmentation/labelme_voc/JPEGImages/*.jpg",
    "domain_transform/statue.png",
    "colorization/mingnuj_cat/original.jpg",
    "stereo/middlebury_v3_trainingQ/Teddy/im0.png",
    "rgbd/matterport_fireplace/rgb.jpg",
    "rgbd/sensor_shelf/rgb.jpg",
    "rgbd/tum_fr1_desk/rgb/*359684.png",
    "rgbd/kitti_0926d01_f5/rgb.png",
    "depth_superres/_input/art_big/*_color.png",
)
"""Below the folder of data: from 0.08 to 1.5 megapixels, indoors, outdoors and rendered."""
PATCH, COVER, ROUGH = 16, 0.3, 3
"""The mask: patches as a network gives them, the fraction that they cover, and their roughness."""
FASTER, MEAN, OVERLAP = 10, 1e-4, 0.999
REST = 0.25
"""Seconds after which OpenBLAS's threads no longer wait for more work: 2^28 ticks are 0.1 s."""

ALONE = ("ours", "theirs", "ratio", "ratio_solving", "reading")

Row = dict[str, Any]
Call = Callable[[], tuple[Array, Array | None]]


def pictures(setting: Setting, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and files of pictures; scikit-image's are written to `folder`."""
    root = setting.data.root
    paths = [path for part in PICTURES for path in sorted(root.glob(part))] if root else []
    paths = paths or (photos.files(root) if root else [])
    for name in () if paths else photos.OWN:
        paths.append(folder / f"{name}.png")
        Image.fromarray(photos.OWN[name]()).save(paths[-1])
    for path in paths[: 1 if setting.quick else None]:
        below = path.relative_to(root) if root else Path(path.stem)
        yield str(below), path


def rough_mask(shape: tuple[int, int]) -> Array:
    """Return a made mask of large shapes whose outline follows patches."""
    size = tuple(-(-side // PATCH) for side in shape)
    smooth = ndimage.gaussian_filter(np.random.default_rng(0).normal(size=size), ROUGH)
    inside = smooth > np.quantile(smooth, 1 - COVER)
    whole = np.kron(inside, np.ones((PATCH, PATCH)))
    return np.asarray(whole[: shape[0], : shape[1]])


def calls_of(path: Path, folder: Path) -> dict[str, tuple[Call, Call]]:
    """Return our call and theirs by the name of the original."""
    from bilateral import compat

    image = np.array(Image.open(path).convert("RGB"))
    target = rough_mask(image.shape[:2])
    calls: dict[str, tuple[Call, Call]] = {}
    for name in (peers.TOKENCUT, peers.FOUND):
        if peer := peers.load(folder, name):
            ours = partial(compat.bilateral_solver_output, str(path), target)
            calls[name] = ours, partial(peer.bilateral_solver_output, str(path), target)
    if peer := peers.load(folder, peers.NOTEBOOK):
        confidence = 0.25 + 0.75 * np.random.default_rng(1).random((target.size, 1))

        def notebook(module: Any) -> tuple[Array, None]:
            grid = module.BilateralGrid(image, sigma_luma=4, sigma_chroma=4, sigma_spatial=8)
            params = {"lam": 128, "A_diag_min": 1e-5, "cg_tol": 1e-5, "cg_maxiter": 25}
            solver = module.BilateralSolver(grid, params)
            return solver.solve(target.reshape(-1, 1), confidence), None

        calls[peers.NOTEBOOK] = partial(notebook, compat), partial(notebook, peer)
    return calls


def compare(path: Path, folder: Path, repeats: int) -> dict[str, Row]:
    """Measure all originals on one picture."""
    rows = {}
    rest = 0 if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else REST
    reading = cpu_stopwatch(lambda: np.array(Image.open(path).convert("RGB")))
    for name, (ours, theirs) in calls_of(path, folder).items():
        (x, mask), (y, their_mask) = ours(), theirs()
        row: Row = {"shape": "x".join(map(str, Image.open(path).size))}
        row |= {"mean": float(np.abs(x - y).mean()), "largest": float(np.abs(x - y).max())}
        if mask is not None and their_mask is not None:
            either = np.count_nonzero(mask | their_mask)
            row["overlap"] = np.count_nonzero(mask & their_mask) / either if either else 1.0
        stopwatches = {"ours": cpu_stopwatch(ours), "theirs": cpu_stopwatch(theirs, rest)}
        times = in_turns(stopwatches | {"reading": reading}, repeats)
        rows[name] = row | times | {"ratio": times["theirs"].median / times["ours"].median}
        read = times["reading"].median if mask is not None else 0.0
        solving = times["theirs"].median - read, times["ours"].median - read
        rows[name]["ratio_solving"] = solving[0] / solving[1]
    return rows


def cpu_stopwatch(call: Callable[[], Any], rest: float = 0) -> Callable[[], float]:
    """Measure the CPU time of a call, then rest, so that its threads do not count elsewhere."""

    def seconds() -> float:
        began = time.process_time()
        call()
        ended = time.process_time()
        time.sleep(rest)
        return ended - began

    return seconds


def measure(setting: Setting) -> Row:
    results: Row = {"originals": {}}
    folder = setting.peers
    if folder is None:
        return results
    with tempfile.TemporaryDirectory() as made:
        for name, path in pictures(setting, Path(made)):
            as_installed = machine.in_fresh_process(compare, path, folder, setting.repeats)
            with one_thread():
                alone = machine.in_fresh_process(compare, path, folder, setting.repeats)
            for original, row in as_installed.items():
                row |= {f"{key}_alone": alone[original][key] for key in ALONE}
                results["originals"].setdefault(original, []).append({"picture": name, **row})
    return results


@contextmanager
def one_thread() -> Iterator[None]:
    """Start processes in which OpenBLAS and this library have one thread each."""
    before = dict(os.environ)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "BILATERAL_NUM_THREADS": "1"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def as_text(results: Row) -> str:
    found = results["originals"]
    missing = [
        f"{name}: skipped, --peers has no such file ({origin})"
        for name, origin in peers.ORIGINS.items()
        if name not in found
    ]
    return page(
        "CPU times in ms, medians, as installed, then with one thread for OpenBLAS and for this "
        "library (1T). The masks are made: patches of 16 pixels.",
        *[section(name, rows) for name, rows in found.items()],
        bullets("Not compared:", missing) if missing else None,
    )


def section(name: str, rows: list[Row]) -> str:
    ratios = [row["ratio"] for row in rows]
    overlap = "; IoU of the masks | {overlap:.5f}" if "overlap" in rows[0] else ""
    alone = [row["ratio_alone"] for row in rows]
    solving = [row["ratio_solving_alone"] for row in rows]
    verdicts = [
        f"times as fast, worst picture: {at_least(min(ratios), FASTER, '.1f')}",
        f"the same with one thread each: {at_least(min(alone), FASTER, '.1f')}",
        f"the same without reading the file: {at_least(min(solving), FASTER, '.1f')}",
        f"mean difference of the soft maps: {at_most(worst(rows, 'mean'), MEAN, '.1e')}",
    ]
    if overlap:
        least = min(row["overlap"] for row in rows)
        verdicts.append(f"IoU of the masks: {at_least(least, OVERLAP, '.5f')}")
    return page(
        f"## {name}",
        table(
            rows,
            "picture | {picture}; pixels | {shape}; ours | {ours:ms}; theirs | {theirs:ms}; "
            "times as fast | {ratio:.1f}; "
            "ours 1T | {ours_alone:ms}; theirs 1T | {theirs_alone:ms}; "
            "times as fast 1T | {ratio_alone:.1f}; reading 1T | {reading_alone:ms}; "
            "times as fast 1T without reading | {ratio_solving_alone:.1f}; "
            "mean difference | {mean:.1e}; largest | {largest:.1e}" + overlap,
        ),
        f"Geometric means: {geometric_mean(ratios):.1f} times as fast, 1T "
        f"{geometric_mean(alone):.1f} times, without reading {geometric_mean(solving):.1f} times.",
        bullets("Verdicts:", verdicts),
    )


def worst(rows: list[Row], key: str) -> float:
    return max(float(row[key]) for row in rows)
