"""`polish` matches a dense solve of the same equations; block means and their adjoint."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bilateral
from bilateral import BlockMeans
from support.strategies import WHITE, Array, as_dtype, picture, seeds, shapes


def overlaps(length: int, blocks: int) -> Array:
    """B along one axis, (blocks, length): the fraction of each block that each pixel covers."""
    edges = np.arange(blocks + 1) * length / blocks
    pixels = np.arange(length)
    low, high = edges[:-1, np.newaxis], edges[1:, np.newaxis]
    shared = np.minimum(high, pixels + 1) - np.maximum(low, pixels)
    return np.maximum(shared, 0) * blocks / length


def laplacian(photo: Array, z: Array, smoothness: float, sigma: float, scale: float) -> Array:
    """Return the matrix of the smoothness term, reweighted at z."""
    levels = photo.reshape(*photo.shape[:2], -1) * 255.0 / WHITE[photo.dtype.name]
    (height, width), number = z.shape, np.arange(z.size).reshape(z.shape)
    L = np.zeros((z.size, z.size))
    for y, x in np.ndindex(height, width):
        for dy, dx in [(0, 1), (1, 0), (1, 1), (1, -1)]:
            v, u = y + dy, x + dx
            if not (v < height and 0 <= u < width):
                continue
            w = smoothness * (1 if dy * dx == 0 else np.sqrt(0.5))
            w *= np.exp(-np.abs(levels[y, x] - levels[v, u]).sum() / sigma)
            w /= 1 + ((z[y, x] - z[v, u]) / scale) ** 2
            i, j = number[y, x], number[v, u]
            L[i, i] += w
            L[j, j] += w
            L[i, j] -= w
            L[j, i] -= w
    return L


@pytest.mark.parametrize("dtype", WHITE)
@given(shapes(9), st.booleans(), st.sampled_from([(), (3,)]), st.sampled_from([1, 2]), seeds)
@example((9, 2), True, (3,), 2, 9)  # the energy of a step underflows
def test_enough_steps_are_the_exact_solution(
    dtype: str,
    shape: tuple[int, int],
    blocks: bool,
    channels: tuple[int, ...],
    rounds: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    photo = as_dtype(picture("ramp", shape + channels, rng), dtype)
    image, target = rng.normal(size=(2, *shape))
    weights = np.where(rng.uniform(size=shape) < 0.5, 0, rng.uniform(0, 2, shape))
    smoothness, sigma, scale, anchor = rng.uniform(0.1, 5, 4)
    sigma *= 20
    seen = None
    if blocks:
        low = rng.normal(size=[int(rng.integers(1, n + 1)) for n in shape])
        seen = BlockMeans(low, shape, rng.uniform(size=low.shape))
    found = bilateral.polish(
        image,
        photo,
        target,
        weights,
        smoothness=smoothness,
        sigma_rgb=sigma,
        scale=scale,
        anchor=anchor,
        observation=seen,
        rounds=rounds,
        steps=500,
    )
    z = image
    for _ in range(rounds):
        A = laplacian(photo, z, smoothness, sigma, scale)
        A += np.diag((weights + anchor).ravel())
        b = (weights * target + anchor * image).ravel()
        if seen is not None:
            B = np.kron(*(overlaps(n, m) for n, m in zip(shape, seen.low.shape, strict=True)))
            A += B.T @ (seen.weights.reshape(-1, 1) * B)
            b += B.T @ (seen.weights * seen.low).ravel()
        z = np.linalg.solve(A, b).reshape(shape)
    np.testing.assert_allclose(found, z, atol=1e-5)


def scene() -> tuple[Array, Array, Array]:
    """Return a photo of two surfaces, their depth, and the same with blocks and noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:64, :80]
    near = x + 0.4 * y > 52
    photo = np.where(near, 190, 60) + rng.normal(0, 3, near.shape)
    depth = np.where(near, 2.0, 5.0)
    blocky = depth + 0.1 * ((x // 8 + y // 8) % 2) + rng.normal(0, 0.02, depth.shape)
    return np.clip(photo, 0, 255).astype(np.uint8), depth, blocky


def test_blocks_disappear_and_edges_stay() -> None:
    photo, depth, blocky = scene()
    found = bilateral.polish(blocky, photo, scale=0.3, smoothness=20, anchor=0.05)
    error = found - depth - 0.05
    assert error.std() < 0.5 * (blocky - depth).std()
    edge = np.abs(np.diff(depth, axis=1)) > 1
    assert np.abs(np.diff(found, axis=1))[edge].min() > 2.5


def test_block_means_are_matched() -> None:
    photo, depth, _ = scene()
    low = BlockMeans(np.zeros((9, 13)), depth.shape).means(depth)
    seen = BlockMeans(low, depth.shape, np.full(low.shape, 100))
    start = seen.back_project(np.full(depth.shape, depth.mean()))[0]
    found = bilateral.polish(
        start, photo, scale=0.3, observation=seen, anchor=1e-3, rounds=4, steps=60
    )
    assert np.abs(seen.means(found) - seen.low).max() < 0.1
    assert np.sqrt(np.mean((found - depth) ** 2)) < 0.3 * np.sqrt(np.mean((start - depth) ** 2))


@given(shapes(30), st.sampled_from(["float32", "float64"]), seeds)
def test_means_and_spread_are_adjoint(shape: tuple[int, int], dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.normal(size=[int(rng.integers(1, n + 1)) for n in shape]).astype(dtype)
    seen, x = BlockMeans(low, shape), rng.normal(size=shape)
    B = [overlaps(n, m) for n, m in zip(shape, low.shape, strict=True)]
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(seen.means(x), B[0] @ x @ B[1].T, atol=tolerance)
    np.testing.assert_allclose(seen.spread(low), B[0].T @ low @ B[1], atol=tolerance)
    assert seen.means(x).dtype == seen.spread(low).dtype == dtype


def test_back_projection_lowers_the_loss() -> None:
    rng = np.random.default_rng(0)
    photo, depth, _ = scene()
    low = BlockMeans(np.zeros((8, 10)), depth.shape).means(depth) + rng.normal(0, 0.1, (8, 10))
    low[3, 4] = np.nan
    seen = BlockMeans(low, depth.shape)
    solver = bilateral.BilateralSolver(bilateral.BilateralGrid(photo), 0.01, tolerance=1e-7)
    x = np.full(depth.shape, depth.mean())
    losses = []
    for _ in range(8):
        x = solver.solve(*seen.back_project(x))
        losses.append(np.sum(seen.weights * (seen.means(x) - seen.low) ** 2))
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.5 * losses[0]
    assert np.isfinite(x).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    photo, depth, blocky = scene()
    big = [np.tile(a, (5, 5)) for a in (photo, blocky.astype(np.float32))]
    seen = BlockMeans(np.tile(depth, (5, 5))[::7, ::9], big[0].shape)
    before, found = bilateral.get_num_threads(), []
    try:
        for count in (1, threads):
            bilateral.set_num_threads(count)
            polished = bilateral.polish(big[1], big[0], scale=0.3, observation=seen)
            found.append(polished.tobytes() + seen.means(polished).tobytes())
    finally:
        bilateral.set_num_threads(before)
    assert found[0] == found[1]


def test_channels_dtypes_and_unknown_targets() -> None:
    photo, _, blocky = scene()
    both = np.stack([blocky, 3 * blocky], axis=2)
    found = bilateral.polish(both, photo, both, scale=0.3)
    np.testing.assert_allclose(found[:, :, 0], bilateral.polish(blocky, photo, blocky, scale=0.3))
    millimetres = np.rint(1000 * blocky).astype(np.uint16)
    rounded = bilateral.polish(millimetres, photo, scale=300)
    assert rounded.dtype == np.uint16
    np.testing.assert_allclose(rounded, 1000 * bilateral.polish(blocky, photo, scale=0.3), atol=2)
    target, weights = blocky.copy(), np.ones(blocky.shape)
    target[:10], weights[:10] = np.nan, 0
    np.testing.assert_array_equal(
        bilateral.polish(blocky, photo, target, scale=0.3),
        bilateral.polish(blocky, photo, blocky, weights, scale=0.3),
    )


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2)])
def test_small_images(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).normal(size=shape)
    found = bilateral.polish(image, np.zeros(shape, np.uint8), scale=1.0)
    assert found.shape == shape
    assert np.ptp(found) <= np.ptp(image)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"image": np.full((4, 5), np.nan)}, "image: expected finite values"),
    ({"image": np.zeros((4, 6))}, "image: expected shape"),
    ({"target": np.zeros((5, 5))}, "target: expected shape"),
    ({"target": np.zeros((4, 5, 2))}, "target: expected the shape of image"),
    ({"weights": np.ones((4, 5))}, "weights: expected None"),
    ({"target": np.zeros((4, 5)), "weights": -np.ones((4, 5))}, "weights: expected finite"),
    ({"scale": 0}, "scale: expected a number above 0"),
    ({"anchor": -1}, "anchor: expected a number, 0 or above"),
    ({"rounds": 1.5}, "rounds: expected a whole number"),
    ({"observation": BlockMeans(np.zeros((1, 1)), (9, 9))}, "observation: expected the shape"),
]


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_wrong_input_is_reported(change: dict[str, Any], told: str) -> None:
    good = {"image": np.zeros((4, 5)), "reference": np.zeros((4, 5), np.uint8), "scale": 1}
    with pytest.raises((TypeError, ValueError)) as error:
        bilateral.polish(**(good | change))
    assert str(error.value).startswith(told)


def test_wrong_blocks_are_reported() -> None:
    with pytest.raises(ValueError, match=r"^shape: expected at least the shape of low"):
        BlockMeans(np.zeros((4, 5)), (4, 4))
    with pytest.raises(ValueError, match=r"^weights: expected one number per pixel"):
        BlockMeans(np.zeros((4, 5)), (8, 8), np.zeros(4))
    with pytest.raises(ValueError, match=r"^pixels: expected one number per pixel"):
        BlockMeans(np.zeros((4, 5)), (8, 8)).means(np.zeros((8, 9)))
