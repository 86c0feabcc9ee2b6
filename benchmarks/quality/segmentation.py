"""Refine class probabilities (Table 4), against the network, a plain solve and a dense CRF."""

from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage
from skimage import color, filters
from skimage.io import imread

import bilateral
from benchmarks.common import Array, published
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.data import files
from benchmarks.common.machine import Others
from benchmarks.common.photos import OWN
from benchmarks.common.tables import at_least, behind, bullets, page, plural, spread, table
from benchmarks.common.timing import Timing, geometric_mean, in_turns, stopwatch
from benchmarks.quality.lowrank import read_images
from bilateral.filters import resize
from bilateral.tasks import refine_segmentation

try:
    from pydensecrf import densecrf

    CRF_VERSION = version("pydensecrf2")
except ImportError:
    CRF_VERSION = None

NAME = DATA = "segmentation"
TITLE, REPEATS = "Segmentation (Table 4)", 7

BAND = 2  # pixels near an edge of the truth do not count: annotators place edges only roughly
CELLS = (4, 8, 16, 16)  # sizes of the made networks' cells, in pixels
CRF_MISSING = "Dense CRF skipped: install it with pip install pydensecrf2."
# sigmas of the bilateral kernel, in pixels and in grey levels
CRF_SETTINGS, CRF_STEPS = {"CRF 67 / 3": (67, 3), "CRF 30 / 5": (30, 5)}, 10
SIDE, QUICK_SIDE = 512, 128
NETWORK, PLAIN, OURS = "network", "plain solve", "ours"
NAMES = {
    NETWORK: "the network alone",
    PLAIN: "bilateral solver alone, uniform confidence",
    "uniform": "refine_segmentation, uniform confidence",
    OURS: "refine_segmentation",
    **{name: f"dense {name}" for name in CRF_SETTINGS},
}
# of our rows, the paper's
PAPERS = {NETWORK: "network", PLAIN: "the paper"} | dict.fromkeys(CRF_SETTINGS, "dense CRF")


class Case(NamedTuple):
    """A photograph, class probabilities (H, W, K), and the true labels, below 0 if unknown."""

    name: str
    source: str
    photo: Array
    p: Array
    truth: Array


def from_folder(folder: Path) -> Iterator[Case]:
    """Read a network's scores for photographs with labels (NAME_5labels.png, or NAME.npy)."""
    for image in read_images(folder):
        files = sorted(folder.glob(f"**/{image.name}_5labels.png"))
        files += sorted(folder.glob(f"**/{image.name}.npy"))
        if files:
            truth = np.load(files[0]) if files[0].suffix == ".npy" else imread(files[0])
            photo = np.ascontiguousarray(image.reference[..., :3])
            yield Case(image.name, "network", photo, image.probabilities, truth.astype(int))


def pictures(side: int) -> Iterator[tuple[str, Array, Array]]:
    """scikit-image's pictures, with three classes of brightness as labels."""
    for name, picture in OWN.items():
        photo = picture()[:side, :side]
        smooth = ndimage.gaussian_filter(color.rgb2gray(photo), 3)
        truth = np.digitize(smooth, filters.threshold_multiotsu(smooth, 3))
        yield name, np.ascontiguousarray(photo), truth


def made(name: str, photo: Array, truth: Array, cell: int, seed: int) -> Case:
    """Imitate the scores of a network with cells of some pixels: warped, blurred, noisy truth."""
    rng = np.random.default_rng(seed)
    known = np.where(truth < 0, 0, truth)
    labels = np.unique(known)

    def smooth_noise(shape: tuple[int, ...], sigma: float) -> Array:
        noise = ndimage.gaussian_filter(rng.normal(size=shape), (sigma, sigma, 0)[: len(shape)])
        return np.asarray(noise / (noise.std() or 1))

    warp = [0.4 * cell * smooth_noise(known.shape, 1.3 * cell) for _ in range(2)]
    places = np.indices(known.shape) + warp
    moved = ndimage.map_coordinates(known, places, order=0, mode="nearest")
    soft = [ndimage.gaussian_filter((moved == k).astype(float), 0.45 * cell) for k in labels]
    low = tuple(max(1, round(n / cell)) for n in known.shape)
    at = [((np.arange(n) + 0.5) * m / n).astype(int) for n, m in zip(low, known.shape, strict=True)]
    means = np.stack(soft, axis=2)[np.ix_(*at)]
    logits = 1.5 * np.log(means + 0.01) + smooth_noise(means.shape, 1)
    e = np.exp(resize.bilinear(logits.astype(np.float32), known.shape))
    p = np.zeros((*known.shape, int(labels.max()) + 1), np.float32)
    p[..., labels] = e / e.sum(axis=2, keepdims=True)
    return Case(name, f"made, cells of {cell}", photo, p, truth)


def mean_iou(labels: Array, truth: Array) -> float:
    """Mean intersection over union in percent, over the classes of one image's truth."""
    size = 2 * BAND + 1
    plain = ndimage.maximum_filter(truth, size) == ndimage.minimum_filter(truth, size)
    predicted, expected = (a[plain & (truth >= 0)] for a in (labels, truth))
    ratios = [
        np.sum((predicted == k) & (expected == k)) / np.sum((predicted == k) | (expected == k))
        for k in np.unique(expected)
    ]
    return 100 * float(np.mean(ratios))


def dense_crf(p: Array, photo: Array, sigmas: tuple[float, float]) -> Array:
    """Labels by the fully connected CRF of Krähenbühl and Koltun (2011), by pydensecrf2."""
    labels = np.unique(p.argmax(axis=2))  # the other classes would only cost time
    height, width, count = *p.shape[:2], len(labels)
    energy = -np.log(np.maximum(np.moveaxis(p[..., labels], 2, 0), 1e-5))
    crf = densecrf.DenseCRF2D(width, height, count)
    crf.setUnaryEnergy(np.ascontiguousarray(energy.reshape(count, -1), np.float32))
    crf.addPairwiseGaussian(sxy=3, compat=3)
    crf.addPairwiseBilateral(sxy=sigmas[0], srgb=sigmas[1], rgbim=photo, compat=4)
    marginals = np.asarray(crf.inference(CRF_STEPS)).reshape(count, height, width)
    return np.asarray(labels[marginals.argmax(axis=0)])


def cells(setting: Setting) -> Iterator[Cell]:
    """Real scores, or made ones without data; for the benchmark alone, made ones of all cells."""
    folder = setting.data.folder(DATA) or setting.data.root
    real = [] if folder is None else list(from_folder(folder))
    known = [(case.name, case.photo, case.truth) for case in real]
    known = known or list(pictures(QUICK_SIDE if setting.quick else SIDE))
    known = known[:1] if setting.quick else known
    crf = f"CRF {CRF_VERSION}"
    stand_ins = [made(*picture, CELLS[-1], seed) for seed, picture in enumerate(known)]
    for case in real or stand_ins:
        inputs = files(folder) if real else ()
        yield Cell(case.name, partial(compare, case, setting), inputs, crf)
    if not setting.paper:
        for seed, cell in list(enumerate(CELLS))[-1 if setting.quick else 0 :]:
            for picture in known:
                case = made(*picture, cell, seed)
                yield Cell(f"{case.name}, {case.source}, {seed}", partial(score, case), (), crf)


def compare(case: Case, setting: Setting) -> dict[str, Any]:
    bilateral.set_num_threads(setting.threads[-1])
    return score(case) | speed(case, setting.repeats)


def score(case: Case) -> dict[str, Any]:
    sigmas = {"sigma_xy": 16, "sigma_luma": 16, "sigma_chroma": 8}
    plain = bilateral.solve(case.photo, case.p, **sigmas, smoothness=64)
    labels = {
        NETWORK: case.p.argmax(axis=2),
        PLAIN: plain.argmax(axis=2),
        "uniform": refine_segmentation(case.p, case.photo, labels=True, confidence="uniform"),
        OURS: refine_segmentation(case.p, case.photo, labels=True),
    }
    crfs = CRF_SETTINGS if CRF_VERSION else {}
    labels |= {name: dense_crf(case.p, case.photo, sigmas) for name, sigmas in crfs.items()}
    iou = {method: mean_iou(of_method, case.truth) for method, of_method in labels.items()}
    return {"name": case.name, "source": case.source, "iou": iou}


def speed(case: Case, repeats: int) -> dict[str, Any]:
    """Time whole calls in turns, both from probabilities of the image's size."""
    others = Others()
    crfs = CRF_SETTINGS if CRF_VERSION else {}
    calls = {k: stopwatch(dense_crf, case.p, case.photo, s) for k, s in crfs.items()}
    times = in_turns(calls | {OURS: stopwatch(refine_segmentation, case.p, case.photo)}, repeats)
    ours: Timing = times.pop(OURS)
    crf = min(times.values(), key=lambda timing: timing.median, default=None)
    ratio = crf.median / ours.median if crf else None
    return {"ours": ours, "crf": crf, "ratio": ratio, "other_work": others.cores()}


def _timed(values: Values) -> list[dict[str, Any]]:
    return [value for value in values.values() if "ours" in value]  # the paper's table


def summary(values: Values, _: Setting) -> Results:
    rows = [
        {
            **{"image": value["name"], "iou": value["iou"], "ours_ms": 1e3 * value["ours"].median},
            **{"crf_ms": value["crf"] and 1e3 * value["crf"].median, "ratio": value["ratio"]},
        }
        for value in _timed(values)
    ]
    crf = [row for row in rows if row["ratio"] is not None]
    return {
        "rows": rows,
        "mean": {m: float(np.mean([row["iou"][m] for row in rows])) for m in rows[0]["iou"]},
        "ours_ms": float(np.mean([row["ours_ms"] for row in rows])),
        "crf_ms": float(np.mean([row["crf_ms"] for row in crf])) if crf else None,
        "ratio": geometric_mean([row["ratio"] for row in crf]) if crf else None,
        **{"crf_skipped": None if CRF_VERSION else CRF_MISSING, "crf_version": CRF_VERSION},
        "published": published.SEGMENTATION,
    }


def as_text(results: Results) -> str:
    quoted, means, ratio = results["published"], results["mean"], results["ratio"]
    times = {OURS: results["ours_ms"], **dict.fromkeys(CRF_SETTINGS, results["crf_ms"])}
    rows = []
    for method, mean in means.items():
        paper, paper_ms = quoted[PAPERS[method]] if method in PAPERS else (None, None)
        row = {"name": NAMES[method], "mean": mean, "ms": times.get(method), "paper": paper}
        row |= dict.fromkeys(("gain", "paper_gain", "paper_ms"))
        if method != NETWORK:
            row |= {"gain": mean - means[NETWORK], "paper_ms": paper_ms}
            row["paper_gain"] = paper and paper - quoted["network"][0]
        rows.append(row)
    paper_ratio = quoted["dense CRF"][1] / quoted["the paper"][1]
    return page(
        f"Mean IOU of {plural(len(results['rows']), 'image')}, each over the classes of its truth "
        "and without a thin band at the edges; the paper's is over Pascal VOC's validation set "
        "and DeepLab-LargeFOV: compare the gains. Times are without the network; the CRF's "
        "(pydensecrf2, bilateral kernels of so many pixels / grey levels) is its faster setting's.",
        table(
            rows,
            " | {name}; IOU, % | {mean:.2f}; gain | {gain:+.2f}; ms | {ms:short}",
            "the paper's IOU, % | {paper:.2f}; gain | {paper_gain:+.2f}; ms | {paper_ms}",
            missing="",
        ),
        "### Image by image, IOU in %",
        table(
            results["rows"],
            " | {image}",
            *(f"{NAMES[method]} | {{iou[{method}]:.2f}}" for method in means),
            "ours, ms | {ours_ms:short}",
        ),
        results["crf_skipped"],
        ratio
        and f"The dense CRF takes {ratio:.1f} times as long as `refine_segmentation` (geometric "
        f"mean); in the paper {paper_ratio:.1f} times as long as the solver.",
        behind(_losses(results), "No row is ahead of ours."),
    )


def _losses(results: Results) -> list[str]:
    means, lines = results["mean"], []
    ours, quoted = means[OURS], results["published"]
    ahead = [f"{NAMES[method]} ({mean:.2f})" for method, mean in means.items() if mean > ours]
    lines += [f"ahead of `refine_segmentation` ({ours:.2f}): {'; '.join(ahead)}"] if ahead else []
    gaps = {row["image"]: row["iou"][OURS] - max(row["iou"].values()) for row in results["rows"]}
    worse = ", ".join(f"{image} ({gap:+.2f})" for image, gap in gaps.items() if gap < 0)
    why = "the [notes](../notes/segmentation.md) say why"
    lines += [f"not the best of the table on {worse}: {why}"] if worse else []
    gain, paper = means[PLAIN] - means[NETWORK], quoted["the paper"][0] - quoted["network"][0]
    more = [f"a plain solve gains {gain:+.2f}, the paper's {paper:+.2f}"] if gain < paper else []
    return lines + more


def details(values: Values) -> str:
    others = [value for value in values.values() if "ours" not in value]
    timed = _timed(values)
    methods = [f"{method} | {{iou[{method}]:.2f}}" for method in timed[0]["iou"]]
    parts = []
    for source in dict.fromkeys(value["source"] for value in others):
        rows = [value for value in others if value["source"] == source]
        means = {m: float(np.mean([row["iou"][m] for row in rows])) for m in timed[0]["iou"]}
        rows.append({"name": "mean", "iou": means})
        parts.append(page(f"## {source}", table(rows, " | {name}", *methods)))
    gains = [row["iou"][OURS] - row["iou"][NETWORK] for row in timed]
    ratios = [row["ratio"] for row in timed if row["ratio"]]
    lines = [
        f"points more than the network in the mean: {at_least(float(np.mean(gains)), 2.0)}",
        f"points more in the worst image: {at_least(min(gains), -0.2)}",
        *(f"CRF / ours at least: {at_least(ratio, 6.0)}" for ratio in sorted(ratios)[:1]),
    ]
    network = timed[0]["source"] == "network"
    return page(*parts, spread(values), bullets("## Targets", lines) if network else None)
