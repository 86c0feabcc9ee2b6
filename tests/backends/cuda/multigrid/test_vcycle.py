"""V-cycles of multigrid: symmetry, convergence, batches and channels.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny.
"""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import diags
from scipy.sparse.linalg import spsolve

import support.kernel_device  # noqa: F401 (skips the file without a device)

# isort: split
import torch

from bilateral.backends.cuda.solve import components
from support.multigrid_scenes import (
    confidence,
    make_scene,
    on_device,
    parts_scene,
    photo_scene,
    results,
    together,
    with_data,
)

pytestmark = pytest.mark.interpreter


@pytest.mark.parametrize(
    ("first_small", "degree"),
    [(1, 1), pytest.param(2, 2, marks=pytest.mark.smoke), (99, 1), (99, 3)],
)
def test_a_cycle_is_symmetric_and_positive_definite(first_small, degree):
    scene = parts_scene()
    weight, _ = confidence(scene, 0.2)
    known = with_data(scene, weight)
    assert 0 < known.sum() < scene.count
    vcycle = scene.vcycle(scene.hierarchy(first_small=first_small), weight, 3.0, degree)
    # Nothing comes from parts without data.
    M = vcycle.apply(on_device(np.diag(known.astype(float)))).cpu().numpy()
    assert_allclose(M, M.T, atol=1e-13)
    assert not M[~known].any()
    M = M[known][:, known]
    assert np.linalg.eigvalsh(M).min() > 0
    A = scene.matrix(weight, 3.0).toarray()[known][:, known]
    eigenvalues = np.linalg.eigvals(M @ A).real
    assert eigenvalues.min() > 0.15
    assert eigenvalues.max() < 1.6


@pytest.mark.parametrize("first_small", [1, 2, 99])
def test_parts_with_data(first_small):
    scene = together(parts_scene(4), parts_scene(5))
    hierarchy = scene.hierarchy(first_small=first_small)
    for part in (0.0, 0.02, 0.2, 1.0):
        weight, _ = confidence(scene, part)
        found = scene.vcycle(hierarchy, weight, 1.0).with_data
        assert_array_equal(found.cpu(), with_data(scene, weight))
        grid = SimpleNamespace(edges=scene.edges())
        assert_array_equal(found.cpu(), components.with_data(grid, on_device(weight)).cpu())


@functools.cache
def photo_hierarchy(dtype):
    return photo_scene().hierarchy(dtype, first_small=None if dtype == torch.float64 else 3)


@pytest.mark.parametrize("part", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("smoothness", [0.25, 4.0, 128.0, 10_000.0])
def test_a_few_steps_suffice(part, smoothness):
    assert steps(part, smoothness, torch.float64) <= 6


# With smoother and fewer data, the mean drowns in rounding: see below.
@pytest.mark.parametrize(("part", "smoothness"), [(0.01, 128.0), (1.0, 10_000.0)])
def test_a_few_steps_suffice_in_single_precision(part, smoothness):
    assert steps(part, smoothness, torch.float32) <= 6


def steps(part, smoothness, dtype):
    """Until the relative error in the A-norm is 1e-3."""
    scene = photo_scene()
    weight, b = confidence(scene, part)
    vcycle = scene.vcycle(photo_hierarchy(dtype), weight, smoothness)
    assert not int(vcycle.has_faint_component)
    A, known = scene.matrix(weight, smoothness), with_data(scene, weight)
    exact = spsolve((A + diags((~known).astype(float))).tocsc(), b)
    errors = solve(A, vcycle, on_device(b).to(dtype)[:, None], exact)
    return next(step for step, error in enumerate(errors) if step == 10 or error < 1e-3)


def solve(A, vcycle, b, exact):
    """Preconditioned conjugate gradients from the nested start: relative errors in the A-norm."""

    def multiply(d):
        return on_device(A @ d.cpu().numpy().astype(float)).to(d.dtype)

    def error():
        e = x[:, 0].cpu().numpy() - exact
        return np.sqrt(e @ (A @ e) / (exact @ (A @ exact)))

    x = vcycle.nested_start(b)
    yield error()
    r, d, last = b - multiply(x), torch.zeros_like(b), 1.0
    while True:
        z = vcycle.apply(r)
        now = (r * z).sum()
        d = z + now / last * d
        q = multiply(d)
        alpha = now / (d * q).sum()
        x, r, last = x + alpha * d, r - alpha * q, now
        yield error()


def test_images_of_a_batch_are_on_their_own():
    scenes = [photo_scene(8, 8, 12), parts_scene(), photo_scene(9, 8, 8)]
    batch, rng = together(*scenes), np.random.default_rng(10)
    weights = [next(iter(confidence(scene, 0.3, 11))) for scene in scenes]
    r = [rng.normal(size=(scene.count, 1)) for scene in scenes]
    found = results(
        batch.vcycle(batch.hierarchy(first_small=2), np.concatenate(weights), 2.0),
        on_device(np.concatenate(r)),
        batch.count,
    )
    for k, (scene, weight, b) in enumerate(zip(scenes, weights, r, strict=True)):
        alone = results(
            scene.vcycle(scene.hierarchy(first_small=2), weight, 2.0), on_device(b), scene.count
        )
        for a, values in zip(alone, found, strict=True):
            assert_array_equal(a, values[batch.first_vertex[k] : batch.first_vertex[k + 1]])


def test_channels_are_on_their_own():
    scene, rng, dtype = parts_scene(), np.random.default_rng(12), torch.float32
    weight, _ = confidence(scene, 0.3)
    vcycle = scene.vcycle(scene.hierarchy(dtype, first_small=2), weight, 2.0)
    r = on_device(rng.normal(size=(scene.count, 3))).to(dtype)
    for function in (vcycle.apply, vcycle.nested_start):
        all_three = function(r)
        for first, last in ((0, 1), (1, 3), (2, 3)):
            part = function(r[:, first:last].contiguous())
            assert_array_equal(part.cpu(), all_three[:, first:last].cpu())


@pytest.mark.smoke
def test_one_colour_stays_solved():
    scene, rng = parts_scene(), np.random.default_rng(13)
    weight = rng.uniform(0.5, 1, scene.count)
    vcycle = scene.vcycle(scene.hierarchy(first_small=2), weight, 2.0)
    A, (b, x) = (
        scene.matrix(weight, 2.0),
        (on_device(rng.normal(size=(scene.count, 2))) for _ in "bx"),
    )
    vcycle.solve_colour0(b, x)
    for there in (x, vcycle.nested_start(b)):
        r = b.cpu().numpy() - A @ there.cpu().numpy()
        assert abs(r[scene.colour == 0]).max() < 1e-12
        assert abs(r[scene.colour == 1]).max() > 0.01
    r[scene.colour == 0] = 0
    z = vcycle.apply(on_device(r))
    assert_allclose(vcycle.apply(on_device(r), colour0_solved=True).cpu(), z.cpu(), atol=1e-14)
    assert abs((A @ z.cpu().numpy())[scene.colour == 0]).max() < 1e-12
    out = torch.full_like(z, 5.0)
    assert vcycle.apply(on_device(r), out=out) is out
    assert torch.equal(out, z)


@pytest.mark.smoke
def test_grids_without_edges_are_solved():
    scene = make_scene(np.array([[[0.0], [100.0], [200.0]]]), 1.0, 1.0)
    assert not (scene.neighbours >= 0).any()
    weight, b = np.array([2.0, 0.0, 4.0]), np.array([[1.0], [0.0], [3.0]])
    for rooms in (None, [], [(2, 2)], [(1, 1), (1, 1)]):
        hierarchy = scene.hierarchy(rooms=rooms)
        assert not bool(hierarchy.overflow)
        vcycle = scene.vcycle(hierarchy, weight, 1.0)
        for x in (vcycle.apply(on_device(b)), vcycle.nested_start(on_device(b))):
            assert_allclose(x.cpu(), [[0.5], [0], [0.75]])
        assert vcycle.with_data.tolist() == [True, False, True]


def test_weights_that_drown_in_rounding_are_told():
    scene = photo_scene(6, 14, 18)
    hierarchy = scene.hierarchy(torch.float32)
    for value, smoothness, expected in ((1.0, 100.0, 0), (1e-9, 1e4, 1)):
        weight = np.zeros(scene.count)
        weight[3] = value
        vcycle = scene.vcycle(hierarchy, weight, smoothness)
        assert int(vcycle.has_faint_component) == expected
