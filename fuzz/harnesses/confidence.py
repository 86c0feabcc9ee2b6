"""Measures of confidence: numbers from 0 to 1 of the right shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilateral import confidence as measures
from fuzz import draw as wrongs
from fuzz.call import Call, Case, require
from fuzz.draw import Array, Draw
from fuzz.properties import known_pixels


def trusts(c: Any, shape: tuple[int, ...], most: float = 1.0) -> None:
    """Require one number from 0 to `most` per pixel."""
    require(c.shape == shape, "another shape", c.shape, shape)
    require(c.dtype in (np.float32, np.float64), "another dtype", c.dtype)
    require(((c >= 0) & (c <= most)).all(), "not from 0 to 1", c.min(), c.max())


def confidence(d: Draw) -> Case:
    """All measures."""
    kind, shape = d.randrange(4), d.shape()
    yield from (variance, support, interval, consistency)[kind](d, shape)


def variance(d: Draw, shape: tuple[int, int]) -> Case:
    """`edge_aware_variance`: 0 at unknown pixels and margins, 1 for a constant map."""
    target, photo = d.map(shape), d.photo(shape, channels=(0, 1, 2, 3))
    given = d.some(
        sigma_xy=(0.5, 8.0, 80.0), sigma_rgb=(1.0, 32.0), sigma=(1e-3, 2.0, 1e3), margin=(0, 1, 3)
    )
    if d.chance(0.15):
        table: dict[str, Any] = {"sigma": wrongs.POSITIVE, "sigma_xy": wrongs.POSITIVE}
        table |= {"sigma_rgb": wrongs.POSITIVE, "margin": (-1, 1.5, "x", (1, 2, 3))}
        wrong = d.spoil(given, table)
        yield Call(measures.edge_aware_variance, target, photo, wrong=wrong, **given)
        return
    c = yield Call(measures.edge_aware_variance, target, photo, **given)
    trusts(c, shape)
    require((c[~known_pixels(target, None)] == 0).all(), "trust in unknown pixels", c)
    require((c[:, : given.get("margin", 0)] == 0).all(), "trust in the margin", c)


def support(d: Draw, shape: tuple[int, int]) -> Case:
    """`upsampling_support`."""
    given = d.some(sigma=(None, 0.1, 3.0, 1e3), overlap=("nearest", "sum"))
    given["factor"] = d.decades(-0.3, 2) if d.chance(0.7) else (d.decades(0, 1), d.decades(0, 1))
    if d.chance(0.15):
        table: dict[str, Any] = {"factor": wrongs.POSITIVE[:6], "sigma": wrongs.POSITIVE[:6]}
        wrong = d.spoil(given, table | {"overlap": wrongs.CHOICE})
        yield Call(measures.upsampling_support, shape, wrong=wrong, **given)
        return
    c = yield Call(measures.upsampling_support, shape, **given)
    trusts(c, shape, np.inf if given.get("overlap") == "sum" else 1.0)


def interval(d: Draw, shape: tuple[int, int]) -> Case:
    """`from_interval`: the target lies within the interval."""
    lower = d.map(shape, channels=(0,), dtypes=("float32", "float64"))
    length = np.abs(d.map(shape, channels=(0,), dtypes=("float32",)))
    with np.errstate(invalid="ignore"):  # of two infinities
        upper: Array = np.where(np.isfinite(lower), lower + length, length)
    upper = np.where(lower == np.inf, np.nan, upper)
    scale = d.decades(-3, 3)
    if d.chance(0.15):
        if d.chance(0.5):
            bad = d.choice(wrongs.POSITIVE)
            yield Call(measures.from_interval, lower, lower, scale=bad, wrong="scale")
        else:
            below = np.nan_to_num(np.asarray(lower), posinf=0, neginf=0)
            yield Call(measures.from_interval, below, below - 1 - abs(below), wrong="lower")
        return
    target, c = yield Call(measures.from_interval, lower, upper, scale=scale)
    trusts(c, shape)
    known = np.isfinite(lower) & np.isfinite(upper)
    require((c[~known] == 0).all() and np.isnan(target[~known]).all(), "an unknown interval", c)
    inside = (target >= lower) & (target <= upper)
    require(inside[known].all(), "outside the interval", target)


def consistency(d: Draw, shape: tuple[int, int]) -> Case:
    """`left_right_consistency`."""
    left, right = (
        np.abs(d.map(shape, channels=(0,), dtypes=("float32", "float64", "uint8")))
        for _ in range(2)
    )
    given = d.some(threshold=(0.1, 1.0, 10.0), view=("left", "right"), soft=(False, True))
    if d.chance(0.15):
        table: dict[str, Any] = {"threshold": wrongs.POSITIVE, "view": wrongs.CHOICE}
        wrong = d.spoil(given, table | {"soft": wrongs.FLAG})
        yield Call(measures.left_right_consistency, left, right, wrong=wrong, **given)
        return
    c = yield Call(measures.left_right_consistency, left, right, **given)
    trusts(c, shape)
    own = left if given.get("view", "left") == "left" else right
    require((c[~np.isfinite(own)] == 0).all(), "trust in unknown pixels", c)
