"""Tasks on depth maps: refine, complete, align, enlarge."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilateral import tasks
from fuzz import draw as wrongs
from fuzz.call import Call, Case, require
from fuzz.draw import Array, Draw
from fuzz.properties import finite, like, same_bits, with_threads

CELLS = {"sigma_xy": wrongs.POSITIVE[:6], "sigma_luma": wrongs.POSITIVE}
MORE = {"reference_max": (0, -1.0, "x"), "dtype": ("complex64", "S3", "nonsense")}
RESULTS = (None, None, "float32", "float64", "uint16", "float16")


def scene(d: Draw, shape: tuple[int, int], dtypes: tuple[str, ...] = wrongs.MAP_DTYPES) -> Array:
    """A depth map: above 0, of surfaces, with holes."""
    depth = d.map(shape, channels=(0,), dtypes=dtypes, positive=True)
    if depth.dtype.kind == "f":
        return depth
    return d.layout(depth + np.asarray(1, depth.dtype)) if d.chance(0.5) else depth


def mask(d: Draw, shape: tuple[int, int]) -> Array | None:
    """None, or a mask that leaves one pixel in two."""
    if d.chance(0.8):
        return None
    known = d.numpy.random(shape) < 0.5
    known[d.pixel(shape)] = True
    return d.layout(known if d.chance(0.5) else known.astype(np.uint8) * 255)


def known(depth: Array, *unknown: Any) -> Array:
    """Mark values that the tasks take as known, for all options."""
    kept = np.isfinite(depth) & (np.asarray(depth) > 0)
    for part in unknown:
        if part is not None:
            kept &= np.asarray(part) > 0
    return np.asarray(kept)


def refine_depth(d: Draw) -> Case:
    """Finite, of the map's dtype, the same bits for any number of threads."""
    shape = d.shape(32)
    depth, photo, part = scene(d, shape), d.photo(shape), mask(d, shape)
    confidence = d.confidence(depth) if d.chance(0.3) else None
    given = d.some(
        preset=("sensor", "stereo", "sparse"),
        sigma_xy=(None, 2.0, 8.0),
        sigma_luma=(4.0, 30.0),
        scale=(None, 0.1, 10.0),
        dtype=RESULTS,
        invalid=(None, 0, (0, -1)),
    )
    given |= {"mask": part}
    if d.chance(0.15):
        table = CELLS | MORE | {"preset": wrongs.CHOICE, "scale": wrongs.POSITIVE[:6]}
        wrong = d.spoil(given, {**table, "mask": (np.ones((1, 2, 3, 4)), "x")})
        yield Call(tasks.refine_depth, depth, photo, confidence, wrong=wrong, **given)
        return
    if not known(depth, part, confidence).any():
        return
    x = yield Call(tasks.refine_depth, depth, photo, confidence, **given)
    finite(like(x, depth, given.get("dtype")))
    if d.chance(0.08):
        again = yield Call(with_threads, 3, tasks.refine_depth, depth, photo, confidence, **given)
        same_bits(again, x, "another number of threads")


def complete_depth(d: Draw) -> Case:
    """Finite; the confidence is from 0 to 1."""
    shape = d.shape(28)
    points, photo, part = scene(d, shape), d.photo(shape), mask(d, shape)
    if points.dtype.kind == "f" and d.chance(0.7):
        points = np.array(points)
        points[d.numpy.random(shape) > 0.2] = np.nan
        points[d.pixel(shape)] = 1.0
    given = d.some(
        kind=("auto", "depth", "disparity"), sigma_xy=(None, 2.0), dtype=RESULTS, invalid=(None, -1)
    )
    given |= {"mask": part}
    if d.chance(0.2):
        table = CELLS | MORE | {"kind": wrongs.CHOICE, "return_confidence": wrongs.FLAG}
        wrong = d.spoil(given, table)
        yield Call(tasks.complete_depth, points, photo, wrong=wrong, **given)
        return
    if not known(points, part).any():
        return
    result = yield Call(tasks.complete_depth, points, photo, return_confidence=True, **given)
    finite(like(result[0], points, given.get("dtype")))
    c = result[1]
    require(c.shape == shape and ((c >= 0) & (c <= 1)).all(), "confidence", c)


def align_depth(d: Draw) -> Case:
    """Finite, of the metric map's dtype."""
    shape = d.shape(28)
    relative = d.map(shape, channels=(0,), holes=0)
    metric, part = scene(d, shape), mask(d, shape)
    if metric.dtype.kind == "f" and d.chance(0.7):
        metric = np.array(metric)
        metric[d.numpy.random(shape) > 0.3] = np.nan
        metric[d.pixel(shape)] = 1.0
    photo = d.photo(shape) if d.chance(0.4) else None
    given = d.some(kind=("auto", "depth", "inverse depth"), sigma_xy=(None, 3.0), dtype=RESULTS[:4])
    given |= {"mask": part}
    if d.chance(0.15):
        table = {"kind": wrongs.CHOICE, "sigma_xy": wrongs.POSITIVE[:6]}
        table |= {"sigma_relative": wrongs.POSITIVE, "mask": (np.ones((1, 2, 3, 4)),)}
        wrong = d.spoil(given, table)
        yield Call(tasks.align_depth, relative, metric, photo, wrong=wrong, **given)
        return
    if not known(metric, part).any():
        return
    x = yield Call(tasks.align_depth, relative, metric, photo, **given)
    finite(like(x, metric, given.get("dtype")))


def superres_depth(d: Draw) -> Case:
    """Finite, of the photograph's size."""
    low_shape = d.shape(12)
    factor = d.choice((1, 2, 3, 4, 2.5))
    shape = round(low_shape[0] * factor), round(low_shape[1] * factor)
    low, photo = scene(d, low_shape), d.photo(shape)
    given = d.some(
        preset=("best", "fast", "paper"),
        keep_holes=(False, True),
        invalid=(None, 0),
        dtype=RESULTS,
    )
    if d.chance(0.3):
        given["factor"] = factor
    if given.get("keep_holes") and np.dtype(given.get("dtype") or low.dtype).kind != "f":
        given["invalid"] = 0  # marks the holes
    if d.chance(0.15):
        table: dict[str, Any] = {"preset": wrongs.CHOICE, "factor": (*wrongs.POSITIVE[:6], 0.3)}
        wrong = d.spoil(given, table | MORE | {"keep_holes": wrongs.FLAG})
        if given.get("factor", 1) is not None:
            yield Call(tasks.superres_depth, low, photo, wrong=wrong, **given)
        return
    if not known(low).any():
        return
    x = yield Call(tasks.superres_depth, low, photo, **given)
    require(x.shape == shape, "another shape", x.shape, shape)
    result = np.dtype(given.get("dtype") or low.dtype).newbyteorder("=")
    require(x.dtype.newbyteorder("=") == result, "another dtype", x, result)
    if not given.get("keep_holes"):
        finite(x)


def depth_stream(d: Draw) -> Case:
    """Live frames: finite, of the map's dtype, even if sizes change."""
    shape = d.shape(24)
    dtype = d.choice(("uint16", "float32"))
    stream = tasks.DepthStream(invalid=d.choice((None, 0)))
    photo = d.photo(shape, channels=(0, 3), dtypes=("uint8",))
    for _ in range(d.randrange(2, 6)):
        if d.chance(0.08):
            shape = d.shape(24)
            photo = d.photo(shape, channels=(0, 3), dtypes=("uint8",))
            yield Call(stream.reset)
        depth = scene(d, shape, (dtype,))
        if not known(depth).any():
            continue
        x = yield Call(stream.push, depth, photo)
        finite(like(x, depth))
