"""Scenes of the demo: spoiled maps and pictures with a known truth, and how to repair each one.

The sigmas and smoothnesses of the first three scenes were tuned on the same photograph and truth:
their errors show the best case, and are no benchmark.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import BlockMeans, color, tasks
from bilateral.cli.demo.room import room
from bilateral.cli.demo.strokes import strokes
from bilateral.cli.demo.views import View, disparity_view, label_view, photo_view
from bilateral.filters import resize

if TYPE_CHECKING:
    from bilateral.cli.display.sheets import Panel

Array = NDArray[Any]
Callback = Callable[[int, float], Any]
Repaired = tuple[Array, bilateral.SolveInfo | None]

# Small in space, for thin bars and spokes; large in colour, to keep textured surfaces together.
SIGMAS: dict[str, Any] = {"sigma_xy": 4, "sigma_luma": 16, "sigma_chroma": 12}
FACTOR = 8
MAX_DISPARITY = 70
FOCUS = 42.0  # disparity of the motorcycle's tank
STROKES = 40
STRIDE = 24  # pixels per cell of the network that `segment` simulates


@dataclass(frozen=True)
class Problem:
    """A spoiled input, the function that repairs it, and the truth to compare with."""

    reference: Array
    target: Array
    truth: Array
    baseline: Array
    """Result of the usual method for the same target."""
    repair: Callable[[Callback | None], Repaired]
    view: View
    caption: tuple[str, str] = ("Photo", "Middlebury 2014, Motorcycle")
    """Caption of the reference, and its source."""
    extra_panel: "Callable[[Array], Panel] | None" = None
    """Returns one more picture, which shows a use of the repaired map."""


@dataclass(frozen=True)
class Scene:
    """One scene of the demo; `SCENES` lists them."""

    name: str
    description: str
    baseline: str
    """Name of the usual method."""
    make: Callable[[], Problem]
    step_unit: str = ""
    """Unit of the solver's iterations, if they are not steps."""


def holes() -> Problem:
    """Cut boxes and ellipses out of the map."""
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
    # Known pixels are exact: a low smoothness keeps them and still fills the gaps.
    repair = _solve(photo, target, smoothness=0.1)
    return Problem(photo, target, truth, nearest(target), repair, disparity_view(truth))


def noise() -> Problem:
    """Add Gaussian noise everywhere, and replace a tenth of the pixels by wrong values."""
    photo, truth = motorcycle()
    rng = np.random.default_rng(0)
    target = truth + rng.normal(0, 4, truth.shape).astype(np.float32)
    wrong = rng.random(truth.shape) < 0.1
    target[wrong] = rng.uniform(np.nanmin(truth), np.nanmax(truth), wrong.sum())
    target[np.isnan(truth)] = np.nan
    # A pixel that differs from its surroundings by twice the noise is more likely wrong than noisy.
    loss = bilateral.GemanMcClure(8.0)

    def repair(callback: Callback | None) -> Repaired:
        x, info = _solver(photo, 0.1).solve_robust(
            target, loss=loss, smooth=(8, 16), callback=callback, return_info=True
        )
        return bilateral.median(x), info  # the paper's authors end with a median, too

    return Problem(photo, target, truth, bilateral.median(target), repair, disparity_view(truth))


def sparse() -> Problem:
    """Keep one pixel in a hundred."""
    photo, truth = motorcycle()
    known = np.random.default_rng(0).random(truth.shape) < 0.01
    target = np.where(known, truth, np.nan)
    # Samples are exact and few: use the lowest smoothness that still connects them.
    repair = _solve(photo, target, smoothness=0.03)
    return Problem(photo, target, truth, nearest(target), repair, disparity_view(truth))


def slanted() -> Problem:
    """Keep one pixel in five hundred of a room with slanted floor and walls."""
    photo, truth = room()
    known = np.random.default_rng(0).random(truth.shape) < 0.002
    target = np.where(known, truth, np.float32(np.nan))
    # The usual method: the same solver with a constant on each vertex, which makes stairs.
    constant = _solver(photo, smoothness=0.03).solve(target)
    view = disparity_view(truth, highest_error=3)
    return Problem(
        photo,
        target,
        truth,
        constant,
        _solve(photo, target, smoothness=0.03, model="planar"),
        view,
        ("Photo", "computer graphics"),
        extra_panel=lambda _: view.panel(constant, "Constant model", "stairs on slanted surfaces"),
    )


def superres() -> Problem:
    """Simulate a depth camera with an eighth of the resolution and noise of 1 px."""
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
        disparity_view(truth),
    )


def stereo() -> Problem:
    """Match a rectified pair, refine the disparities, and refocus the photograph."""
    from bilateral.cli.display.sheets import Panel

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
        disparity_view(truth),
        extra_panel=refocused,
    )


def colorize() -> Problem:
    """Remove the colours of a photograph, except along some strokes."""
    from skimage.data import coffee

    load: Any = coffee
    photo: Array = load()
    gray = np.rint(color.luma(photo)).astype(np.uint8)
    painted = strokes(gray.shape, STROKES)[..., np.newaxis]
    marked = np.where(painted, photo, gray[..., np.newaxis])
    # The usual method: each pixel takes the chroma of the nearest stroke.
    chroma = np.where(painted, color.chroma(photo, 255), np.nan)
    filled = np.stack([nearest(chroma[..., channel]) for channel in (0, 1)], axis=2)
    baseline = color.colored(color.luma(gray[..., np.newaxis]), filled, 255, gray.dtype)
    return Problem(
        photo,
        marked,
        photo,
        baseline,
        lambda _: (tasks.colorize(gray, marked), None),
        photo_view(),
        ("Photo", "scikit-image, coffee"),
    )


def segment() -> Problem:
    """Simulate a network's coarse scores for a motorcycle, furniture and the background."""
    photo, disparity = motorcycle()
    truth = object_labels(nearest(disparity))
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
        label_view(photo),
    )


def object_labels(disparity: Array) -> Array:
    """Return labels: 2 for the motorcycle, 1 for bench and shelf, 0 for floor and walls."""
    background = np.percentile(disparity, 15, axis=1, keepdims=True)  # floor or wall of each row
    is_object = disparity > background + 6
    return np.where(is_object, np.where(disparity > 31, 2, 1), 0)


SCENES = (
    Scene("holes", "large regions of the map are missing", "nearest pixel", holes),
    Scene(
        "noise", "noise of 4 px, and 10 % of the pixels are wrong", "5x5 median", noise, " rounds"
    ),
    Scene("sparse", "only 1 % of the pixels are known", "nearest pixel", sparse),
    Scene("slanted", "0.2 % of a room, filled by planes", "constant model", slanted),
    Scene("superres", "one noisy value for 8 x 8 pixels", "bicubic", superres),
    Scene("stereo", "disparities of a pair, by matching blocks", "solver alone", stereo),
    Scene("colorize", "colours only along some strokes", "nearest stroke", colorize),
    Scene("segment", "one noisy score per class for 24 x 24 pixels", "bilinear", segment),
)


@cache
def motorcycle() -> tuple[Array, Array]:
    """Return Middlebury 2014's Motorcycle at quarter size: left photograph and true disparity.

    The disparity is NaN where it is unknown.
    """
    from skimage.data import stereo_motorcycle

    load: Any = stereo_motorcycle  # scikit-image has no types
    photo, _, disparity = load()
    return photo, np.where(np.isfinite(disparity), disparity, np.nan).astype(np.float32)


@cache
def motorcycle_right() -> Array:
    """Return the right photograph of Motorcycle."""
    from skimage.data import stereo_motorcycle

    load: Any = stereo_motorcycle
    right: Array = load()[1]
    return right


def nearest(target: Array) -> Array:
    """Give unknown pixels the value of the nearest known one."""
    from scipy.ndimage import distance_transform_edt

    indices = distance_transform_edt(np.isnan(target), return_distances=False, return_indices=True)
    filled: Array = target[tuple(indices)]
    return filled


def _solver(photo: Array, smoothness: float, model: str = "constant") -> bilateral.BilateralSolver:
    grid = bilateral.BilateralGrid(photo, **SIGMAS)
    return bilateral.BilateralSolver(grid, smoothness, model=model)


def _solve(
    photo: Array, target: Array, smoothness: float, model: str = "constant"
) -> Callable[[Callback | None], Repaired]:
    def repair(callback: Callback | None) -> Repaired:
        return _solver(photo, smoothness, model).solve(target, callback=callback, return_info=True)

    return repair
