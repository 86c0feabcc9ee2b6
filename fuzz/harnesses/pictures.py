"""Tasks on pictures: colorize, segmentation, stereo, defocus, cutting out."""

from __future__ import annotations

from typing import Any

import numpy as np

import bilateral
from bilateral import tasks
from fuzz import draw as wrongs
from fuzz.call import Call, Case, require
from fuzz.draw import WHITE, Array, Draw
from fuzz.properties import finite, like, same_bits, with_threads

FULL = ("uint8", "uint8", "uint16", "float32", "float64")


def colorize(d: Draw) -> Case:
    """RGB of the dtype of the picture."""
    shape = d.shape(28)
    gray = d.photo(shape, channels=(0, 3), dtypes=FULL)
    white = WHITE[gray.dtype.newbyteorder("=").name]
    layer = np.zeros((*shape, 4))
    for _ in range(d.randrange(1, 4)):
        y, x = d.pixel(shape)
        layer[y : y + 2, x : x + 3] = (d.random(), d.random(), d.random(), 1)
    layer[d.pixel(shape)] = (1, 0, 0, 1)
    if (layer[..., 3] == 1).all():  # a constant alpha marks no strokes
        return
    strokes = (layer * white).astype(gray.dtype.newbyteorder("="))
    given = d.some(
        preset=("best", "paper"), sigma_xy=(None, 2.0), sigma_luma=(None, 8.0), smoothness=(None, 1)
    )
    if d.chance(0.15):
        table: dict[str, Any] = {"preset": wrongs.CHOICE, "sigma_xy": wrongs.POSITIVE[:6]}
        table |= {"smoothness": wrongs.POSITIVE[:6], "mask": (np.ones((1, 2, 3)),)}
        wrong = d.spoil(given, table)
        yield Call(tasks.colorize, gray, strokes, wrong=wrong, **given)
        return
    x = yield Call(tasks.colorize, gray, strokes, **given)
    require(x.shape == (*shape, 3), "another shape", x)
    require(x.dtype == gray.dtype.newbyteorder("="), "another dtype", x)
    finite(x)


def segmentation(d: Draw) -> Case:
    """Probabilities from 0 to 1 with sums of 1, or labels."""
    shape, low = d.shape(28), d.shape(16)
    image = d.photo(shape)
    classes = d.choice((0, 1, 2, 3, 8))
    scores = d.levels((*low, classes) if classes else low)
    if d.chance(0.4) and classes != 1:
        scores = 8 * (scores - 0.5)
        given: dict[str, Any] = {"logits": d.choice((None, True))}
        if scores.min() >= 0:
            given["logits"] = True
    else:
        if classes > 1:
            scores = (scores + 1e-3) / (scores + 1e-3).sum(axis=2, keepdims=True)
        given = {"logits": d.choice((None, False))}
    if classes and scores.shape[1:] == shape and low != shape:
        return  # looks like channels first, which is an error
    scores = d.layout(scores.astype(d.choice(("float32", "float64"))))
    given |= d.some(
        confidence=("boundary", "uniform", "entropy"),
        labels=(False, True),
        sigma_xy=(None, 4.0),
        smoothness=(None, 1.0, 50.0),
        rank_tolerance=(None, 1e-4, 0.1),
    )
    if d.chance(0.15):
        table: dict[str, Any] = {"confidence": ("x", np.ones((1, 2, 3))), "labels": wrongs.FLAG}
        table |= {"logits": ("x", 3), "sigma_xy": wrongs.POSITIVE[:6], "dtype": ("complex64",)}
        wrong = d.spoil(given, table | {"rank_tolerance": (1, -1, "x")})
        yield Call(tasks.refine_segmentation, scores, image, wrong=wrong, **given)
        return
    x = yield Call(tasks.refine_segmentation, scores, image, **given)
    if given.get("labels"):
        require(x.shape == shape and x.dtype == np.int64, "labels", x)
        require(x.min() >= 0 and x.max() < max(2, classes), "labels", x.min(), x.max())
        return
    require(x.shape == ((*shape, classes) if classes else shape), "another shape", x)
    require(((x >= 0) & (x <= 1)).all(), "not from 0 to 1", x.min(), x.max())
    if classes > 1:
        require((np.abs(x.sum(axis=2) - 1) < 1e-3).all(), "sums are not 1", x.sum(axis=2))


def stereo(d: Draw) -> Case:
    """Disparities from 0 on, and the intervals of block matching."""
    shape = d.shape(32)
    left = d.photo(shape, dtypes=FULL)
    shift = d.randrange(0, 5)
    right = np.roll(np.asarray(left), -shift, axis=1)
    most = d.choice((1, 3, 8, 20))
    given = d.some(window=(1, 3, 7), margin=(0.0, 0.05), consistency=(None, 1.0, 0.1))
    if d.chance(0.15):
        table: dict[str, Any] = {"window": (2, 0, -1, 1.5, "x"), "margin": wrongs.NOT_NEGATIVE}
        wrong = d.spoil(given, table | {"consistency": (-1, "x", float("nan"))})
        yield Call(tasks.match_blocks, left, right, most, wrong=wrong, **given)
        return
    disparity, c = yield Call(tasks.match_blocks, left, right, most, **given)
    require(disparity.shape == c.shape == shape, "another shape", disparity, c)
    require(((c >= 0) & (c <= 1)).all(), "confidence", c.min(), c.max())
    require(np.isfinite(disparity[c > 0]).all(), "trust in unknown pixels", disparity)
    if d.chance(0.5):
        given |= d.some(
            smoothness=(0.5, 4.0),
            loss=(None, bilateral.Huber(1.0)),
            iterations=(1, 3),
            smooth=(None, (4, 4)),
        )
        x = yield Call(tasks.stereo_depth, left, right, most, **given)
        require(x.shape == shape and x.dtype == np.float32, "shape or dtype", x)
        require(((x >= 0) & (x <= most + 1)).all(), "outside the search", x.min(), x.max())


def defocus(d: Draw) -> Case:
    """Of the picture's dtype and within its range; no aperture changes nothing."""
    shape = d.shape(28)
    image = d.photo(shape, dtypes=FULL)
    depth = d.levels(shape) * 5 + 0.2
    given = d.some(
        kind=("depth", "disparity"),
        blades=(None, 3, 7),
        max_radius=(None, 0.1, 2.5),
        linear=(True,),
    )
    focus, aperture = d.uniform(0.2, 6), d.choice((0, 0.5, 3.0, 50.0))
    if d.chance(0.15):
        table: dict[str, Any] = {"kind": wrongs.CHOICE, "blades": (2, 1.5, "x")}
        table |= {"rotation": (float("nan"), "x"), "max_radius": (-1, "x", float("nan"))}
        wrong = d.spoil(given, table)
        yield Call(tasks.defocus, image, depth, focus, aperture, wrong=wrong, **given)
        return
    x = yield Call(quiet, tasks.defocus, image, depth, focus, aperture, **given)
    like(x, image)
    finite(x)
    room = 1e-5 * float(np.abs(np.asarray(image, np.float64)).max()) + (image.dtype.kind == "u")
    require(x.max() <= float(image.max()) + room, "brighter than the picture", x.max(), image.max())
    if d.chance(0.1):
        again = yield Call(
            with_threads, 3, quiet, tasks.defocus, image, depth, focus, aperture, **given
        )
        same_bits(again, x, "another number of threads")


def quiet(function: Any, *args: Any, **options: Any) -> Any:
    """Call without the warning that nothing is sharp."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*args, **options)


def cut_out(d: Draw) -> Case:
    """A matte from 0 to 1 that keeps the strokes."""
    shape = d.shape(28)
    if shape[0] * shape[1] < 2:
        return
    photo = d.photo(shape)
    labels: Array = np.zeros(shape, d.choice(("int8", "int32", "float32")))
    for _ in range(d.randrange(1, 6)):
        labels[d.pixel(shape)] = d.choice((1, -1))
    flat = labels.ravel()
    first, second = d.sample(range(flat.size), 2)
    flat[first], flat[second] = 1, -1
    if d.chance(0.15):
        bad = d.choice((np.zeros(shape, np.int8), np.ones((1, 2, 3, 4)), labels > 0, abs(labels)))
        yield Call(tasks.cut_out, photo, bad, wrong="scribbles")
        return
    given = d.some(hard=(False, True))
    if d.chance(0.3) and flat.size > 3:
        rough = np.zeros(shape, bool)
        rough[: (shape[0] + 1) // 2, : (shape[1] + 1) // 2] = True
        given["mask"] = rough
    x = yield Call(tasks.cut_out, photo, labels, **given)
    require(x.shape == shape, "another shape", x)
    if given.get("hard"):
        require(x.dtype == np.bool_, "another dtype", x)
        return
    require(x.dtype == np.float32, "another dtype", x)
    require(((x >= 0) & (x <= 1)).all(), "not from 0 to 1", x.min(), x.max())
    require((x[labels > 0] == 1).all() and (x[labels < 0] == 0).all(), "a stroke changed", x)
