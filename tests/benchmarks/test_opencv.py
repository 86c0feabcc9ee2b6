"""Test the process that calls OpenCV, with a stand-in for cv2 whose results are known."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from benchmarks.camera import methods
from benchmarks.common import opencv
from benchmarks.common.cells import Setting
from benchmarks.common.data import Data
from benchmarks.common.opencv import Worker
from benchmarks.common.photos import Photo
from benchmarks.common.rgbd import Frame
from benchmarks.quality import depth, filters, superres
from benchmarks.quality.depth import Case
from benchmarks.quality.superres import Scene
from benchmarks.speed.cases import OpenCV, compare, problem

CV2 = """
import numpy as np
from scipy import ndimage
__version__ = "4.6.0-fake"
threads = []
setNumThreads = threads.append
def medianBlur(image, size):
    return ndimage.median_filter(image, size, mode="nearest")
class ximgproc:
    DTF_RF, WMF_EXP = "rf", "exp"
    def guidedFilter(photo, z, radius, epsilon):
        return z + radius + epsilon
    def dtFilter(photo, z, sigma_xy, sigma_rgb, mode, numIters):
        assert mode == "rf"
        return z + numIters
    def weightedMedianFilter(photo, z, radius, sigma, kind):
        return z
    def fastGlobalSmootherFilter(photo, z, smoothness, sigma):
        return z
    class createDisparityWLSFilterGeneric:
        def __init__(self, confidence): pass
        def setLambda(self, smoothness): pass
        def setSigmaColor(self, sigma): pass
        def filter(self, z, photo): return z
    class createFastGlobalSmootherFilter:
        def __init__(self, *_): pass
        def filter(self, z): return z
    class createFastBilateralSolverFilter:
        def __init__(self, guide, *settings): self.guide = guide
        def filter(self, z, confidence):
            import os
            os.write(1, b"#iterations: 12\\n")
            return self.guide[..., 0] * np.float32(2)
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python whose cv2 is the stand-in."""
    (tmp_path / "cv2.py").write_text(CV2)
    script = tmp_path / "python"
    start = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = sys.argv[1:]; "
    start += "runpy.run_path(sys.argv[0], run_name='__main__')"
    # drop -I, which the worker's command line begins with
    script.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" -c "{start}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def setting(python: str | None) -> Setting:
    return Setting(Data(None), True, 1, python, {}, (1, 2), any_python=python)


PHOTO = Photo("made", np.random.default_rng(0).integers(0, 256, (40, 56, 3), np.uint8))


def test_a_probe_makes_the_call_and_tells_the_version(python: str, tmp_path: Path) -> None:
    for call in ("median", "guided filter", "domain transform", "fast bilateral solver"):
        versions = opencv.probe(python, call)
        assert versions == {"opencv": "4.6.0-fake", "opencv_numpy": np.__version__}
    text = (tmp_path / "cv2.py").read_text().replace("dtFilter", "dtFilterIsMissing")
    (tmp_path / "cv2.py").write_text(text)
    assert opencv.probe(python, "domain transform") is None
    assert opencv.probe(python, "median") is not None
    assert opencv.probe(str(tmp_path / "nowhere"), "median") is None


def test_the_worker_answers_with_results_times_and_iterations(python: str) -> None:
    z = np.arange(12, dtype=np.float32).reshape(3, 4)
    guide = np.full((3, 4, 3), 7, np.uint8)
    with Worker(python, {"photo": guide, "z": z, "c": z}) as peer:
        answer = peer.run("guided filter", "photo z", 2, 3.0, save=True)
        np.testing.assert_array_equal(peer.result(), z + 2 + 9)
        assert answer["iterations"] is None
        answer = peer.run("fast bilateral solver", "photo z c", 8, 8, 8, 4.0, 25, save=True)
        np.testing.assert_array_equal(peer.result(), np.full((3, 4), 14))
        assert answer["iterations"] == 12
        assert answer["construction"] < answer["seconds"]
        assert peer.cpu_seconds == answer["cpu_seconds"]
        with pytest.raises(RuntimeError, match="the peer's process ended with 1"):
            peer.run("no such call", "photo")


def test_opencvs_solver_gets_bgr_and_its_error_is_measured(python: str) -> None:
    task = problem(PHOTO)
    with OpenCV(python, task, 1) as peer:
        row = compare(task, 16, peer, (1,), 1)
    blue = PHOTO.pixels[..., 2] * np.float32(2)
    assert row["opencv_error"] == pytest.approx(task.error(blue))
    assert row["opencv_iterations"] == 12
    assert row["ratio"] == row["opencv"].median / row["ours"][1]["whole"].median


def test_medians_are_compared_bit_by_bit(python: str) -> None:
    rows = filters.medians(PHOTO, python, (1,), 1)
    peers = {(row["image"], row["size"]): row["opencv"] is not None for row in rows}
    images = ("uint8", "uint16", "float32", "float64", "float32, 5% NaN")
    assert peers == {(name, size): name in images[:3] for name in images for size in (3, 5)}
    assert [row["scipy"] is None for row in rows] == ["NaN" in row["image"] for row in rows]
    with pytest.raises(RuntimeError, match="our medians differ from those of OpenCV"):
        filters._same(np.zeros(3), np.ones(3), "OpenCV")


def test_the_difference_from_opencvs_domain_transform(python: str) -> None:
    flat = Photo("flat", np.full((20, 24, 3), 90, np.uint8))  # any filter keeps it
    for row in filters.speed(flat, setting(python)):
        assert row["rms_difference"] == pytest.approx(filters.ITERATIONS)
        assert row["ratio"] == row["opencv"].median / row["ours"][2].median
    assert [row["ratio"] for row in filters.speed(flat, setting(None))] == [None, None]


def test_opencvs_filters_on_a_disparity_map(python: str) -> None:
    truth = np.full((20, 24), 9, np.float32)
    photo = np.full((20, 24, 3), 90, np.uint8)
    case = Case("flat", "made", photo, truth, truth, truth > 0)
    errors = {(r["filter"], r["setting"]): r["mean"] for r in depth.opencv_filters(case, python)}
    assert errors["domain transform", (16, 5)] == 3
    assert errors["guided filter", (4, 5)] == 4 + 25
    for name in ("WLS", "WLS with confidence", "weighted median", "fast global smoother"):
        setting = depth.FILTERS[name][0]
        assert errors[name, setting] == pytest.approx(0, abs=1e-5)


def test_opencvs_filters_on_a_frame_of_a_camera(python: str) -> None:
    photo = np.full((20, 24, 3), (90, 80, 70), np.uint8)
    depth = np.full((20, 24), 2, np.float32)
    depth[5, 5] = 0
    maps = list(methods.opencv(Frame("flat", photo, depth), python))
    counts = Counter(name for name, _ in maps)
    settings = {f"{name}, OpenCV": len(each) for name, each in methods.FILTERS.items()}
    assert counts == settings | {"fast bilateral solver, OpenCV": 3}
    for name, refined in maps:
        if name.startswith("fast global"):
            np.testing.assert_array_equal(refined, 2)  # the hole is filled before
        elif name.startswith("fast bilateral"):
            np.testing.assert_array_equal(refined, 2 * 70)  # blue comes first


def test_opencvs_solver_is_filtered_like_ours(python: str) -> None:
    photo = np.full((32, 32, 3), 90, np.uint8)
    truth = np.full((32, 32), 180.0)
    scene = Scene("flat", photo, truth, {4: truth[::4, ::4]}, {})
    rows = superres.compare(scene, 4, setting(python))["methods"]
    assert rows[superres.SOLVER]["window"] == pytest.approx(0, abs=1e-4)  # 2 x 90
    assert rows["guided filter, OpenCV"]["window"] == pytest.approx(6 + 4)
    for name in (*superres.EXACT, *superres.PRESETS):
        assert rows[name]["window"] == pytest.approx(0, abs=1e-3), name
