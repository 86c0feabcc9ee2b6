"""Filters of pixels: domain transform, median, polish."""

from __future__ import annotations

from typing import Any

import numpy as np

import bilateral
from fuzz import draw as wrongs
from fuzz.call import Call, Case, require
from fuzz.draw import Draw
from fuzz.harnesses.oracle import Array  # puts the oracles on the path
from fuzz.properties import close, finite, known_pixels, like, same_bits, with_threads, within
from oracles import filters as slow  # type: ignore[import-not-found]
from oracles.median import median_filter  # type: ignore[import-not-found]


def domain_transform(d: Draw) -> Case:
    """Range, dtype, threads, and the oracle on tiny images."""
    shape = d.shape()
    image = d.map(shape)
    photo = d.photo(shape, channels=(0, 1, 2, 3))
    weights = d.confidence(image) if d.chance(0.4) else None
    given: dict[str, Any] = {
        "sigma_xy": d.decades(-1, 3),
        "sigma_rgb": d.decades(-1, 4),
        "weights": weights,
    }
    given |= d.some(iterations=(1, 2, 3, 3, 5, 40))
    if d.chance(0.15):
        wrong = d.spoil(
            given,
            {
                "sigma_xy": wrongs.POSITIVE,
                "sigma_rgb": wrongs.POSITIVE,
                "iterations": (0, *wrongs.COUNT),
                "weights": (np.ones((1, 2, 3, 4)), np.full(shape, -1.0), "x"),
                "dtype": ("complex64", "S3"),
                "reference_max": (0, -1.0, "x"),
            },
        )
        yield Call(bilateral.domain_transform, image, photo, wrong=wrong, **given)
        return
    x = yield Call(bilateral.domain_transform, image, photo, **given)
    finite(like(x, image))
    known = known_pixels(image, weights)
    within(x, image, known, 1e-5)
    if d.chance(0.15):
        again = yield Call(
            with_threads, d.choice((2, 3)), bilateral.domain_transform, image, photo, **given
        )
        same_bits(again, x, "another number of threads")
    exact = photo.dtype.name in slow.WHITE and image.dtype.kind == "f" and image.itemsize >= 4
    if d.chance(0.03) and exact and x.size <= 400:
        plain = {k: v for k, v in given.items() if v is not None}
        native = [np.ascontiguousarray(a).astype(a.dtype.newbyteorder("=")) for a in (image, photo)]
        expected, mass = slow.domain_transform(native[0], native[1], **plain)
        reached = mass > 1e-20  # elsewhere float32 has lost the weights
        unit = float(np.abs(image[known]).max()) + 1e-30
        difference = (x.reshape(expected.shape) - expected)[reached]
        bound = (2e-3 if image.itemsize == 4 else 1e-9) * unit
        require((np.abs(difference) <= bound).all(), "the oracle differs", difference, bound)


def median(d: Draw) -> Case:
    """The oracle, for all dtypes."""
    shape = d.shape(16)
    kinds = ("uint8", "uint16", "float32", "float64", "int16", "int32", "float16", "bool", "int8")
    dtype = d.choice(kinds)
    values = d.levels((*shape, *d.choice(((), (), (1,), (3,)))))
    if dtype[0] in "iu":
        values = (values - 0.5 * (dtype[0] == "i")) * np.iinfo(dtype).max
    elif dtype == "bool":
        values = values > 0.5
    elif d.chance(0.5):
        values[d.numpy.random(values.shape) < 0.3] = d.choice((np.nan, np.inf, -np.inf))
    image = d.layout(values.astype(dtype))
    size = d.choice((3, 5))
    if d.chance(0.1):
        if d.chance(0.5):
            yield Call(bilateral.median, image, d.choice((4, 0, "3", 7, 3.0, None)), wrong="size")
        else:
            yield Call(bilateral.median, image.astype("complex64"), size, wrong="image")
        return
    x = yield Call(bilateral.median, image, size)
    like(x, image)
    if d.chance(0.1):
        again = yield Call(with_threads, 3, bilateral.median, image, size)
        same_bits(again, x, "another number of threads")
    if d.chance(0.05) and image.size <= 60 and dtype != "bool":
        native = np.asarray(image).astype(np.float64).reshape(*shape, -1)
        expected = np.stack(
            [median_filter(native[:, :, k], size) for k in range(native.shape[2])], axis=2
        ).reshape(image.shape)
        got = np.asarray(x).astype(np.float64)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        digits = 1e-6 if image.itemsize >= 4 else 1e-2 if dtype == "float16" else 1.0
        with np.errstate(invalid="ignore"):  # of two infinities
            near = np.abs(got - expected) <= digits * np.abs(expected) + (dtype[0] in "iu")
        require((same | near).all(), "the oracle differs", got, expected)


def polish(d: Draw) -> Case:
    """Finite, of the dtype, constants kept, threads."""
    shape = d.shape(20)
    image = d.map(shape, holes=0)
    photo = d.photo(shape, channels=(0, 1, 2, 3, 5))
    given: dict[str, Any] = {"scale": d.decades(-2, 2)}
    given |= d.some(
        smoothness=(0, 0.1, 4.0, 100.0),
        sigma_rgb=(1.0, 30.0, 1e4),
        anchor=(0.0, 0.05, 1.0),
        rounds=(0, 1, 2),
        steps=(0, 1, 5, 15),
    )
    if given.get("anchor") == 0:  # open: denormal edges leave the means of regions free
        given["sigma_rgb"] = 30.0
    if d.chance(0.15):
        wrong = d.spoil(
            given,
            {
                "scale": wrongs.POSITIVE,
                "smoothness": wrongs.NOT_NEGATIVE,
                "sigma_rgb": wrongs.POSITIVE,
                "anchor": wrongs.NOT_NEGATIVE,
                "rounds": wrongs.COUNT,
                "steps": wrongs.COUNT,
                "observation": (3, np.zeros(3)),
                "weights": (np.ones(shape),),
            },
        )
        yield Call(bilateral.polish, image, photo, wrong=wrong, **given)
        return
    if d.chance(0.3):
        constant: Array = np.full(shape, d.gauss(0, 3), d.choice(("float32", "float64")))
        x = yield Call(bilateral.polish, constant, photo, **given)
        close(x, constant, 1e-5 * abs(float(constant.flat[0])) + 1e-12, "a constant changes")
        return
    if d.chance(0.4):
        given["target"] = image + np.asarray(d.gauss(0, 0.1), image.dtype)
        if d.chance(0.5):
            given["weights"] = d.confidence(image)
    if d.chance(0.2) and image.ndim == 2 and image.dtype.kind == "f":
        small = -(-shape[0] // 2), -(-shape[1] // 2)
        low = d.numpy.random(small).astype(np.float32)
        given["observation"] = yield Call(bilateral.BlockMeans, low, shape)
    x = yield Call(bilateral.polish, image, photo, **given)
    finite(like(x, image))
    if d.chance(0.1):
        again = yield Call(with_threads, 3, bilateral.polish, image, photo, **given)
        same_bits(again, x, "another number of threads")
