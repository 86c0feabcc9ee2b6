"""Planar solves and their derivatives on the device match the CPU's.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny.
"""

from dataclasses import replace

import pytest

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch
from torch import Tensor

import bilateral.torch
from bilateral.torch import operators
from bilateral.torch.cuda import operators as cuda_operators
from bilateral.torch.options import LayerOptions
from support.layers import layer_options

pytestmark = pytest.mark.interpreter


def fail(outcome, options):
    assert outcome.converged, (outcome, options)


def options_of(tolerance, **more) -> LayerOptions:
    options = layer_options((4.0, 30.0, 40.0), tolerance, 100, "multigrid")
    return replace(options, solve=replace(options.solve, model="planar", **more))


def example(images, channels, shape, known=1.0, maps=1, dtype=torch.float64, seed=0):
    """Two shades with noise: reference, target and confidence."""
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> Tensor:
        return torch.rand(images, count, *shape, generator=generator, dtype=torch.float64)

    photo = 0.2 * draw(channels)
    photo[..., shape[1] // 2 + 1 :] += 0.7
    confidence = (draw(1) + 0.1) * (draw(1) < known)
    confidence[..., 0, 0] = 1
    return tuple(v.to(dtype) for v in (photo, draw(maps), confidence))


def moved(tensors):
    return [t.to(DEVICE) if isinstance(t, Tensor) else t for t in tensors]


def both(problem, options):
    expected, handle = operators.kernels["solve"](*problem, None, *options.arguments)
    arguments = *moved(problem), None, *options.arguments
    found, own = cuda_operators.solve(fail, *arguments)
    return found.cpu(), expected, own, handle


CASES = {
    "dense, by sweeps": (example(1, 1, (10, 12)), 2.0, options_of(1e-3), 2e-3),
    "few vertices": (example(2, 3, (4, 5), maps=2), 2.0, options_of(1e-6), 1e-5),
    "few pixels": (example(1, 1, (10, 12), 0.2), 0.1, options_of(1e-6), 1e-5),
    "float32": (example(1, 1, (10, 12), 0.5, dtype=torch.float32), 2.0, options_of(1e-4), 1e-4),
    "by the noise": (
        example(2, 1, (9, 9), maps=1),
        0.1,
        options_of(1e-6, slope_ridge=None),
        1e-5,
    ),
    "no ridge": (example(1, 1, (6, 8), 0.2), 2.0, options_of(1e-6, slope_ridge=0.0), 1e-4),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=pytest.mark.smoke if "vertices" in name else []) for name in CASES],
)
def test_solutions_are_the_cpus(case):
    given, smoothness, options, bound = CASES[case]
    problem = *given, torch.tensor(smoothness, dtype=torch.float64)
    found, expected, _, _ = both(problem, options)
    assert (found - expected).square().mean().sqrt() <= bound


@pytest.mark.smoke
def test_maps_of_derivatives_are_the_cpus():
    reference, target, confidence = example(2, 1, (4, 6), maps=2)
    confidence[..., 4:] = 0  # a part without data
    options = options_of(1e-9)
    problem = reference, target, confidence, torch.tensor(0.7, dtype=torch.float64)
    _, _, own, handle = both(problem, options)
    g = torch.rand(target.shape, generator=torch.Generator().manual_seed(1)).double()
    around = reference, g, *problem[2:]
    for transposed in (False, True):
        rest = transposed, *options.arguments
        expected = operators.kernels["apply_planes"](handle, *around, *rest)
        found = cuda_operators.apply_planes(fail, own, *moved(around), *rest)
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-6, atol=1e-7)
        # A copied handle rebuilds the matrix.
        again = cuda_operators.apply_planes(fail, own.clone(), *moved(around), *rest)
        assert torch.equal(again, found)
    nothing = torch.full_like(g, torch.nan)
    arguments = *moved((reference, nothing, *problem[2:])), True, *options.arguments
    assert cuda_operators.apply_planes(fail, own, *arguments).isnan().all()


@pytest.mark.smoke
def test_a_grid_serves_again():
    reference, target, confidence = example(1, 1, (4, 5))
    options, one = options_of(1e-6), torch.tensor(1.0, dtype=torch.float64)
    constant = replace(options, solve=replace(options.solve, model="constant"))
    problem = moved((reference, target, confidence, one))
    plain, _ = cuda_operators.solve(fail, *problem, None, *options.arguments)
    for first in (constant, options):
        _, like = cuda_operators.solve(fail, *problem, None, *first.arguments)
        again, _ = cuda_operators.solve(fail, *problem, like, *options.arguments)
        assert torch.equal(again, plain)


@pytest.mark.smoke
def test_errors_name_the_argument():
    reference, target, confidence = moved(example(2, 1, (4, 4)))
    options, one = options_of(1e-3), torch.tensor(1.0, dtype=torch.float64)
    confidence[1] = 0
    with pytest.raises(ValueError, match="at least one pixel with a finite value"):
        cuda_operators.solve(fail, reference, target, confidence, one, None, *options.arguments)
    confidence[1, 0, 1, 1] = -1
    with pytest.raises(ValueError, match="confidence: expected finite numbers, 0 or above"):
        cuda_operators.solve(fail, reference, target, confidence, one, None, *options.arguments)


@pytest.mark.skipif(not COMPILED, reason="needs a GPU")
@pytest.mark.parametrize("clamp", [True, False])
def test_public_functions_agree_and_repeat(clamp):
    reference, target, confidence = example(2, 3, (60, 70), 0.3, dtype=torch.float32)
    options = {"model": "planar", "clamp": clamp, "tolerance": 1e-4}
    y = bilateral.torch.solve(reference, target, confidence, **options)
    found = bilateral.torch.solve(*moved((reference, target, confidence)), **options)
    assert found.is_cuda
    assert (y - found.cpu()).square().mean().sqrt() <= 1e-3
    again = bilateral.torch.solve(*moved((reference, target, confidence)), **options)
    assert torch.equal(again, found)
    y = bilateral.torch.solve_robust(reference, target, confidence, **options)
    found = bilateral.torch.solve_robust(*moved((reference, target, confidence)), **options)
    assert (y - found.cpu()).square().mean().sqrt() <= 1e-2
    gradients = []
    for device in ("cpu", DEVICE):
        given = [v.to(device).requires_grad_() for v in (target, confidence)]
        smooth = torch.tensor(2.0, requires_grad=True)
        y = bilateral.torch.solve(reference.to(device), *given, smoothness=smooth, **options)
        loss = (y * torch.linspace(-1, 2, 70, device=device)).sum()
        gradients.append([g.cpu() for g in torch.autograd.grad(loss, [*given, smooth])])
    for mine, theirs in zip(*gradients, strict=True):
        assert (mine - theirs).norm() <= 0.02 * theirs.norm()
