"""What the demo shows: true maps and pictures spoiled in several ways, and how each is repaired.

The sigmas and smoothnesses of the first three were picked on their very photograph and its truth:
the figures show what to expect at best, they are no benchmark.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import BlockMeans, color, tasks
from bilateral.cli.demo.strokes import strokes
from bilateral.cli.demo.views import Look, classes, colours, disparities
from bilateral.filters import resize

if TYPE_CHECKING:
    from bilateral.cli.display.pictures import Panel

Array = NDArray[Any]
Callback = Callable[[int, float], Any]
Outcome = tuple[Array, bilateral.SolveInfo | None]

# Fine in space for thin bars and spokes, coarse in colour so that textured surfaces stay whole.
SIGMAS: dict[str, Any] = {"sigma_xy": 4, "sigma_luma": 16, "sigma_chroma": 12}
FACTOR = 8
MAX_DISPARITY = 70
FOCUS = 42.0  # disparity of the motorcycle's tank
STROKES = 40
STRIDE = 24  # of the network that `segment` imagines


@dataclass(frozen=True)
class Problem:
    """What was spoiled and what to hold its repair against."""

    reference: Array
    target: Array
    truth: Array
    simple: Array
    """What a usual remedy makes of the same target."""
    repair: Callable[[Callback | None], Outcome]
    look: Look
    caption: tuple[str, str] = ("Photo", "Middlebury 2014, Motorcycle")
    """Of the reference, and where it comes from."""
    extra: "Callable[[Array], Panel] | None" = None
    """One more picture, of what the repaired map is good for."""


@dataclass(frozen=True)
class Scene:
    """A way to spoil something: add one to `SCENES` to show more."""

    name: str
    shows: str
    remedy: str
    """The usual remedy, in a word or two."""
    make: Callable[[], Problem]
    counts: str = ""
    """What the solver counts, where it is not steps."""


def holes() -> Problem:
    """Boxes and ellipses cut out."""
    photo, truth = motorcycle()
    height, width = truth.shape
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    missing = np.zeros(truth.shape, bool)
    for number in range(28):
        dy = (y - rng.uniform(0, height)) / rng.uniform(18, 55)
        dx = (x - rng.uniform(0, width)) / rng.uniform(18, 55)
        missing |= (dy**2 + dx**2 < 1) if number % 2 else (np.maximum(abs(dy), abs(dx)) < 1)
    target = np.where(missing, np.nan, truth)
    # What is known is exact, so hardly smooth it: only the gaps are to be filled.
    repair = _solve(photo, target, smoothness=0.1)
    return Problem(photo, target, truth, nearest(target), repair, disparities(truth))


def noise() -> Problem:
    """Gaussian noise everywhere and a wrong value at every tenth pixel."""
    photo, truth = motorcycle()
    rng = np.random.default_rng(0)
    target = truth + rng.normal(0, 4, truth.shape).astype(np.float32)
    wrong = rng.random(truth.shape) < 0.1
    target[wrong] = rng.uniform(np.nanmin(truth), np.nanmax(truth), wrong.sum())
    target[np.isnan(truth)] = np.nan
    # Twice the noise away from its surroundings, a pixel is more likely wrong than noisy.
    loss = bilateral.GemanMcClure(8.0)

    def repair(callback: Callback | None) -> Outcome:
        x, info = _solver(photo, 0.1).solve_robust(
            target, loss=loss, smooth=(8, 16), callback=callback, return_info=True
        )
        return bilateral.median(x), info  # as the paper's authors clean up

    return Problem(photo, target, truth, bilateral.median(target), repair, disparities(truth))


def sparse() -> Problem:
    """One pixel in a hundred."""
    photo, truth = motorcycle()
    known = np.random.default_rng(0).random(truth.shape) < 0.01
    target = np.where(known, truth, np.nan)
    # Samples are exact and few: the least smoothness that still joins them.
    repair = _solve(photo, target, smoothness=0.03)
    return Problem(photo, target, truth, nearest(target), repair, disparities(truth))


def superres() -> Problem:
    """A depth camera of an eighth of the resolution, with noise of 1 px."""
    photo, truth = motorcycle()
    rows, columns = (size // FACTOR for size in truth.shape)
    shape = rows * FACTOR, columns * FACTOR
    photo, truth = photo[: shape[0], : shape[1]], truth[: shape[0], : shape[1]]
    filled = nearest(truth)
    low = BlockMeans(np.zeros((rows, columns), np.float32), shape).means(filled)
    low += np.random.default_rng(0).normal(0, 1, low.shape).astype(np.float32)
    target = low.repeat(FACTOR, axis=0).repeat(FACTOR, axis=1)
    return Problem(
        photo,
        target,
        truth,
        resize.bicubic(low, shape),
        lambda _: (tasks.superres_depth(low, photo), None),
        disparities(truth),
    )


def stereo() -> Problem:
    """A rectified pair: match, refine, refocus."""
    from bilateral.cli.display.pictures import Panel

    photo, truth = motorcycle()
    right = motorcycle_right()
    matched = tasks.stereo_depth(photo, right, max_disparity=MAX_DISPARITY)
    target, _ = tasks.match_blocks(photo, right, MAX_DISPARITY)

    def refocused(disparity: Array) -> Panel:
        picture = tasks.defocus(
            photo, disparity, focus=FOCUS, aperture=0.35, kind="disparity", max_radius=12
        )
        return Panel(picture, "Refocused", "on the motorcycle, by the repaired map")

    return Problem(
        photo,
        target,
        truth,
        matched,
        lambda _: (tasks.refine_depth(target, photo, preset="stereo"), None),
        disparities(truth),
        extra=refocused,
    )


def colorize() -> Problem:
    """A photograph without its colours, but for some strokes."""
    from skimage.data import coffee

    load: Any = coffee
    photo: Array = load()
    gray = np.rint(color.luma(photo)).astype(np.uint8)
    painted = strokes(gray.shape, STROKES)[..., np.newaxis]
    marked = np.where(painted, photo, gray[..., np.newaxis])
    # The usual remedy: each pixel takes the chroma of the nearest stroke.
    chroma = np.where(painted, color.chroma(photo, 255), np.nan)
    filled = np.stack([nearest(chroma[..., channel]) for channel in (0, 1)], axis=2)
    simple = color.colored(color.luma(gray[..., np.newaxis]), filled, 255, gray.dtype)
    return Problem(
        photo,
        marked,
        photo,
        simple,
        lambda _: (tasks.colorize(gray, marked), None),
        colours(),
        ("Photo", "scikit-image, coffee"),
    )


def segment() -> Problem:
    """Masks of a motorcycle and of furniture, as coarse as a network's."""
    photo, disparity = motorcycle()
    truth = objects(nearest(disparity))
    rows, columns = (size // STRIDE for size in truth.shape)
    shape = rows * STRIDE, columns * STRIDE
    photo, truth = photo[: shape[0], : shape[1]], truth[: shape[0], : shape[1]]
    blocks = BlockMeans(np.zeros((rows, columns), np.float32), shape)
    scores = np.stack([blocks.means((truth == k).astype(np.float32)) for k in range(3)], axis=2)
    noise = np.random.default_rng(0).normal(0, 1, scores.shape)
    scores = (4 * scores + noise).astype(np.float32)
    enlarged = resize.bilinear(scores, shape).argmax(axis=2)
    target = scores.argmax(axis=2).repeat(STRIDE, axis=0).repeat(STRIDE, axis=1)
    return Problem(
        photo,
        target,
        truth,
        enlarged,
        lambda _: (tasks.refine_segmentation(scores, photo, labels=True, logits=True), None),
        classes(photo),
    )


def objects(disparity: Array) -> Array:
    """Labels of Motorcycle: 2 for the motorcycle, 1 for bench and shelf, 0 for floor and walls."""
    behind = np.percentile(disparity, 15, axis=1, keepdims=True)  # floor or wall, row by row
    before = disparity > behind + 6
    return np.where(before, np.where(disparity > 31, 2, 1), 0)


SCENES = (
    Scene("holes", "large regions of the map are missing", "nearest pixel", holes),
    Scene(
        "noise", "noise of 4 px, and 10 % of the pixels are wrong", "5x5 median", noise, " rounds"
    ),
    Scene("sparse", "only 1 % of the pixels are known", "nearest pixel", sparse),
    Scene("superres", "one noisy value for 8 x 8 pixels", "bicubic", superres),
    Scene("stereo", "disparities of a pair, by matching blocks", "solver alone", stereo),
    Scene("colorize", "colours only along some strokes", "nearest stroke", colorize),
    Scene("segment", "one noisy score per class for 24 x 24 pixels", "bilinear", segment),
)


@cache
def motorcycle() -> tuple[Array, Array]:
    """Photograph and true disparity, NaN where unknown: Middlebury 2014, quarter size."""
    from skimage.data import stereo_motorcycle

    load: Any = stereo_motorcycle  # untyped, and not always there when types are checked
    photo, _, disparity = load()
    return photo, np.where(np.isfinite(disparity), disparity, np.nan).astype(np.float32)


@cache
def motorcycle_right() -> Array:
    """The photograph from the right."""
    from skimage.data import stereo_motorcycle

    load: Any = stereo_motorcycle
    right: Array = load()[1]
    return right


def nearest(target: Array) -> Array:
    """Give unknown pixels the value of the nearest known one."""
    from scipy.ndimage import distance_transform_edt

    where = distance_transform_edt(np.isnan(target), return_distances=False, return_indices=True)
    filled: Array = target[tuple(where)]
    return filled


def _solver(photo: Array, smoothness: float) -> bilateral.BilateralSolver:
    return bilateral.BilateralSolver(bilateral.BilateralGrid(photo, **SIGMAS), smoothness)


def _solve(photo: Array, target: Array, smoothness: float) -> Callable[[Callback | None], Outcome]:
    def repair(callback: Callback | None) -> Outcome:
        return _solver(photo, smoothness).solve(target, callback=callback, return_info=True)

    return repair
