"""The robust layer: its rounds and their derivatives."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="the layer needs PyTorch")

import numpy as np
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import bilateral
import bilateral.torch
from bilateral.torch import robust

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

LOSSES = [
    bilateral.GemanMcClure(0.7),
    bilateral.Charbonnier(0.5),
    bilateral.Cauchy(0.5),
    bilateral.Welsch(0.8),
    bilateral.Huber(0.3),
    bilateral.Barron(-1.5, 0.6),
    bilateral.Barron(2.0, 0.6),
    bilateral.Barron(float("-inf"), 0.6),
]


def example(maps: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    photo, target, confidence = (
        torch.rand(k, 5, 6, generator=generator, dtype=torch.float64) for k in (3, maps, 1)
    )
    target[:, 1, 2] += 3
    return photo, target, confidence


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_weights_are_the_losses(loss: Any) -> None:
    e = torch.linspace(-3, 3, 61, dtype=torch.float64).view(1, 1, 1, -1)
    found = robust.weight(loss, e).flatten()
    np.testing.assert_allclose(found, loss.weight(e.flatten().numpy()), rtol=1e-12)
    two = robust.weight(loss, torch.cat([0.6 * e, 0.8 * e], 1)).flatten()
    np.testing.assert_allclose(two, found, rtol=1e-12)


@pytest.mark.parametrize("maps", [1, 2])
def test_the_rounds_of_the_solver_for_arrays(maps: int) -> None:
    photo, target, confidence = example(maps)
    photo = (
        0.05 * photo
    )  # every part has data: the array solver fills others in the first round only
    target[0, 3, 3] = torch.nan
    exact = {"tolerance": 1e-12, "max_iterations": 100}
    found = bilateral.torch.solve_robust(
        photo, target, confidence, iterations=4, sigma_xy=2, **exact
    )
    grid = bilateral.BilateralGrid(photo.permute(1, 2, 0).numpy(), sigma_xy=2)
    solver = bilateral.BilateralSolver(grid, **exact)
    arrays = target.permute(1, 2, 0).numpy(), confidence[0].numpy()
    expected = solver.solve_robust(*arrays, iterations=4)
    np.testing.assert_allclose(found.permute(1, 2, 0), expected, rtol=1e-6)


@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[5]], ids=repr)
def test_gradients(loss: Any) -> None:
    photo, target, confidence = example(2)
    target[1, 4, 4] = torch.nan
    options: dict[str, Any] = {"sigma_xy": 2, "tolerance": 0.0, "max_iterations": 40}
    given = torch.isfinite(target)

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        t = torch.where(given, t, target)
        return bilateral.torch.solve_robust(photo, t, c, loss, 3, smoothness=s, **options)

    tensors = [target.nan_to_num(), confidence + 0.1, torch.tensor(2.0, dtype=torch.float64)]
    tensors = [tensor.requires_grad_() for tensor in tensors]
    assert gradcheck(f, tensors, check_forward_ad=True)
    assert gradgradcheck(f, tensors, fast_mode=True)


def test_a_loss_defined_by_the_user() -> None:
    class Own:
        """Charbonnier's loss, written with tensors."""

        def rho(self, e: Any) -> Any:
            raise NotImplementedError

        def weight(self, e: Any) -> Any:
            return 4 / (1 + 4 * e * e).sqrt()

    photo, target, _ = example()
    target[0, 0, 0] = bilateral.torch.solve(photo, target)[0, 0, 0]  # an error of almost 0
    t, s = target.clone().requires_grad_(), target.clone().requires_grad_()
    one = bilateral.torch.solve_robust(photo, t, loss=Own())
    other = bilateral.torch.solve_robust(photo, s, loss=bilateral.Charbonnier(0.5))
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(
        *(torch.autograd.grad(y.sum(), x)[0] for y, x in ((one, t), (other, s)))
    )


def test_compiled_and_in_batches() -> None:
    photo, target, _ = example()
    photos, targets = torch.stack([photo, photo.flip(1)]), torch.stack([target, target.flip(1)])
    compiled = torch.compile(bilateral.torch.solve_robust, fullgraph=True, backend="aot_eager")
    expected = bilateral.torch.solve_robust(photo, target, sigma_xy=2)
    for f in (compiled, bilateral.torch.solve_robust):
        both = f(photos, targets, sigma_xy=2)
        torch.testing.assert_close(both[0], expected)
        assert f(photo, targets, sigma_xy=2).shape == targets.shape


def test_wrong_arguments() -> None:
    photo, target, _ = example()
    with pytest.raises(TypeError, match=r"loss: .*Welsch"):
        bilateral.torch.solve_robust(photo, target, loss=bilateral.Welsch)
    with pytest.raises(ValueError, match="iterations: expected at least 1, got 0"):
        bilateral.torch.solve_robust(photo, target, iterations=0)
