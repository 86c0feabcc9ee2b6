"""The layer with PyTorch's tools: operators, compilers, transforms, autocast, workers, files."""

import copy
import gc
import io
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="the layer needs PyTorch")

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.data import DataLoader, Dataset

import bilateral
import bilateral.torch
from bilateral.torch import BilateralSolver, handles, operators
from support.layers import layer_options

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

SIGMAS = {"sigma_xy": 4, "sigma_luma": 40, "sigma_chroma": 40}
OPTIONS = layer_options((4.0, 40.0, 40.0), 1e-3, 100, "multigrid")


def example(images: int = 2, maps: int = 2, dtype: Any = torch.float32) -> list[Tensor]:
    """Return reference, target, confidence with an empty part, and smoothness."""
    generator = torch.Generator().manual_seed(0)
    draw = [torch.rand(images, k, 20, 26, generator=generator, dtype=dtype) for k in (3, maps, 1)]
    draw[0][..., 13:] = 0.1 * draw[0][..., 13:] + 0.9
    draw[2][0, ..., 13:] = 0
    return [*draw, torch.tensor(3.0, dtype=dtype)]


def with_grad(*tensors: Tensor) -> list[Tensor]:
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def loss(photo: Tensor, target: Tensor, confidence: Tensor, smoothness: Tensor) -> Tensor:
    x = bilateral.torch.solve(photo, target, confidence, smoothness=smoothness, **SIGMAS)
    return (x * torch.linspace(0, 1, x.shape[-1], dtype=x.dtype)).square().sum()


def grads(f: Callable[..., Tensor], photo: Tensor, *tensors: Tensor) -> list[Tensor]:
    given = with_grad(*tensors)
    value = f(photo, *given)
    return [value.detach(), *torch.autograd.grad(value, given)]


def assert_all_close(found: Any, expected: Any, **tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)


@pytest.mark.parametrize("shared", [False, True])
def test_operators_keep_their_promises(shared: bool) -> None:
    photo, target, confidence, smoothness = example()
    if shared:
        photo, confidence = photo[:1], confidence[:1]
    y, handle = operators.solve(photo, target, confidence, smoothness, None, *OPTIONS.arguments)
    t, c, s = with_grad(target, confidence, smoothness)
    torch.library.opcheck(operators.solve, (photo, t, c, s, None, *OPTIONS.arguments))
    torch.library.opcheck(operators.solve, (photo, t, None, s, handle, *OPTIONS.arguments))
    matrix = handle, photo, t, c, s
    torch.library.opcheck(operators.apply_adjoint, (*matrix, *OPTIONS.arguments))
    torch.library.opcheck(operators.surroundings, (*matrix, True, *OPTIONS.arguments))
    given = handle, photo, target, confidence, smoothness, target, y
    for wanted in ([True, True, True], [False, True, False]):
        torch.library.opcheck(operators.gradients, (*given, wanted, *OPTIONS.arguments))


@pytest.mark.parametrize("shared", [False, True])
def test_a_compiled_layer_trains_as_in_eager_mode(shared: bool) -> None:
    photo, target, confidence, smoothness = example()
    if shared:
        photo, confidence = photo[:1], confidence[:1]
    target[1, 0, 3, 4] = torch.nan
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    given = photo, target, confidence, smoothness
    assert_all_close(grads(compiled, *given), grads(loss, *given), rtol=0, atol=0)
    without_grad = torch.compile(bilateral.torch.solve, fullgraph=True, backend="aot_eager")
    plain = bilateral.torch.solve(photo, target, **SIGMAS)
    assert_all_close([without_grad(photo, target, **SIGMAS)], [plain], rtol=0, atol=0)


def test_a_layer_compiled_for_any_size() -> None:
    photo, target, confidence, smoothness = example()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for width in (26, 24):
        given = photo[..., :width], target[..., :width], confidence[..., :width], smoothness
        assert_all_close(grads(compiled, *given), grads(loss, *given), rtol=1e-5, atol=1e-6)


def test_a_compiled_layer_has_no_wrong_tangents() -> None:
    """An operator without forward mode would return zeros silently: the layer is not compiled."""
    photo, target, confidence, _ = example()

    def jvp(t: Tensor) -> Tensor:
        def f(t: Tensor) -> Tensor:
            return bilateral.torch.solve(photo, t, confidence, **SIGMAS)

        tangent: Tensor = torch.func.jvp(f, (t,), (torch.ones_like(t),))[1]
        return tangent

    expected = jvp(target)
    assert (expected > 0.9).all()
    try:
        found = torch.compile(jvp, backend="aot_eager")(target)
    except Exception as error:
        assert "forward-mode" in str(error)  # noqa: PT017
    else:
        torch.testing.assert_close(found, expected)


def test_vmap_over_targets_is_one_solve_with_more_channels() -> None:
    photo, _, confidence, _ = example()
    targets = torch.rand(3, 2, 2, 20, 26)

    def f(t: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, confidence, **SIGMAS)

    expected = torch.stack([f(t) for t in targets])
    torch.testing.assert_close(torch.vmap(f)(targets), expected, rtol=1e-4, atol=1e-4)
    moved = torch.vmap(f, in_dims=2, out_dims=1)(targets.movedim(0, 2))
    torch.testing.assert_close(moved, expected.movedim(0, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mapped", ["reference", "confidence", "smoothness", "everything"])
def test_vmap_over_anything_with_gradients(mapped: str) -> None:
    given = example(dtype=torch.float64)
    names = "reference", "target", "confidence", "smoothness"
    dims = tuple(0 if mapped in (name, "everything") else None for name in names)
    factors = torch.tensor([1.0, 0.7, 0.4], dtype=torch.float64)
    batched = [
        value if dim is None else torch.stack([factor * value for factor in factors])
        for value, dim in zip(given, dims, strict=True)
    ]
    gradient = torch.func.grad(loss, argnums=(1, 2, 3))
    found = torch.vmap(gradient, in_dims=dims)(*batched)
    for i in range(3):
        own = [v if dim is None else v[i] for v, dim in zip(batched, dims, strict=True)]
        assert_all_close([part[i] for part in found], gradient(*own), rtol=0.02, atol=1e-4)


def test_forward_mode_agrees_with_reverse_mode() -> None:
    photo, target, confidence, smoothness = example(1, 1, torch.float64)
    exact = SIGMAS | {"tolerance": 0.0, "max_iterations": 50}

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, c, smoothness=s, **exact)

    given = target, confidence, smoothness
    along = tuple(torch.rand_like(value) * (value > 0) for value in given)
    y, tangent = torch.func.jvp(f, given, along)
    weights = torch.rand_like(y)
    _, pull = torch.func.vjp(f, *given)
    product = sum((g * d).sum() for g, d in zip(pull(weights), along, strict=True))
    torch.testing.assert_close((weights * tangent).sum(), product)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(v, d) for v, d in zip(given, along, strict=True)]
        torch.testing.assert_close(forward_ad.unpack_dual(f(*duals)).tangent, tangent)
    step = 1e-6
    moved = f(*(value + step * d for value, d in zip(given, along, strict=True)))
    torch.testing.assert_close((moved - y) / step, tangent, rtol=1e-4, atol=1e-5)


def test_a_hessian() -> None:
    photo, target, confidence, _ = example(1, 1, torch.float64)
    exact = SIGMAS | {"tolerance": 0.0, "max_iterations": 50}

    def f(s: Tensor) -> Tensor:
        y = bilateral.torch.solve(photo, s[0] * target, s[1] * confidence, smoothness=s[2], **exact)
        return y.square().sum()

    at = torch.tensor([1.0, 0.8, 3.0], dtype=torch.float64)
    found = torch.func.hessian(f)(at)
    torch.testing.assert_close(found, torch.func.jacrev(torch.func.jacrev(f))(at))
    torch.testing.assert_close(found, found.T)
    slope = torch.func.grad(f)
    for i, step in enumerate(1e-5 * torch.eye(3, dtype=torch.float64)):
        torch.testing.assert_close(
            (slope(at + step) - slope(at)) / 1e-5, found[i], rtol=1e-3, atol=1e-2
        )


def test_autocast_and_half_precision_compute_in_single() -> None:
    photo, target, confidence, _ = example()
    for dtype in (torch.bfloat16, torch.float16):
        half = target.to(dtype).requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = bilateral.torch.solve(photo, half, confidence, **SIGMAS)
        assert y.dtype == dtype
        exact = bilateral.torch.solve(photo, half.detach().float(), confidence, **SIGMAS)
        torch.testing.assert_close(y, exact.to(dtype), rtol=0, atol=0)
        y.sum().backward()
        assert half.grad.dtype == dtype
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert bilateral.torch.solve(photo, target).dtype == torch.float32
        assert bilateral.torch.solve(photo, target.double()).dtype == torch.float64


class Examples(Dataset[Tensor]):
    """Data set that solves in the worker process."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        photo, target, confidence, _ = example(1, 1)
        t = (target[0] + index).requires_grad_()
        y = bilateral.torch.solve(photo[0], t, confidence[0], **SIGMAS)
        y.square().sum().backward()
        return torch.cat([y.detach(), t.grad])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_of_a_data_loader() -> None:
    here = [
        Examples()[i] for i in range(4)
    ]  # threads of this process must not disturb the forked ones
    loader = DataLoader(Examples(), num_workers=2, multiprocessing_context="fork")
    for found, expected in zip(loader, here, strict=True):
        assert torch.equal(found[0], expected)


def test_saving_copying_and_loading_a_layer() -> None:
    layer = BilateralSolver(sigma_xy=4, smoothness=2.5, learn_smoothness=True)
    photo, target, confidence, _ = example()
    expected = layer(photo, target, confidence)
    assert list(layer.state_dict()) == ["log_smoothness"]
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = BilateralSolver(sigma_xy=4, learn_smoothness=True)
    other.load_state_dict(torch.load(file))
    for same in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(photo, target, confidence), expected)
    assert repr(layer) == "BilateralSolver(sigmas=(4, 8, 8), smoothness=2.5, learned)"
    assert not BilateralSolver().state_dict()
    assert repr(BilateralSolver()) == "BilateralSolver(sigmas=(8, 8, 8), smoothness=4)"


def test_a_learned_smoothness_stays_positive_and_finds_its_value() -> None:
    photo, target, _, _ = example(1, 1)
    wanted = bilateral.torch.solve(photo, target, smoothness=20.0, **SIGMAS)
    layer = BilateralSolver(**SIGMAS, smoothness=1.0, learn_smoothness=True)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.3)
    for _ in range(60):
        optimizer.zero_grad()
        (layer(photo, target) - wanted).square().mean().backward()
        optimizer.step()
    assert layer.smoothness.item() == pytest.approx(20, rel=0.2)
    layer.log_smoothness.data.fill_(-50.0)
    assert layer.smoothness.item() == pytest.approx(np.exp(-50.0), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("maps", [1, 3])
def test_the_same_numbers_as_the_call_for_arrays(maps: int, dtype: Any) -> None:
    photo, target, confidence, _ = example(1, maps, dtype)
    target[0, 0, 2, 3] = torch.nan
    y = bilateral.torch.solve(photo, target, confidence, smoothness=2.0, **SIGMAS)
    arrays = (value[0].permute(1, 2, 0).numpy() for value in (photo, target, confidence))
    expected = bilateral.solve(*arrays, smoothness=2.0, **SIGMAS)
    np.testing.assert_array_equal(y[0].permute(1, 2, 0).numpy(), expected.reshape(20, 26, maps))


def test_deterministic_for_any_number_of_threads(keep_num_threads: None) -> None:
    photo, *tensors = example()
    # Large enough that several threads take part.
    given = [photo.repeat(1, 1, 12, 12), *(t.repeat(1, 1, 12, 12) for t in tensors[:2]), tensors[2]]
    results = []
    for threads in (1, 2, 3):
        bilateral.set_num_threads(threads)
        results.append(grads(loss, *given))
    assert_all_close(results[1], results[0], rtol=0, atol=0)
    assert_all_close(results[2], results[0], rtol=0, atol=0)


def solved() -> tuple[Tensor, Tensor, list[Tensor]]:
    photo, *tensors = example(dtype=torch.float64)
    t, c, s = with_grad(*tensors)
    exact = SIGMAS | {"tolerance": 1e-10}
    y = bilateral.torch.solve(photo, t, c, smoothness=s, **exact)
    return y, torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y), [t, c, s]


def test_the_grid_is_kept_for_the_backward_and_forgotten_with_the_graph() -> None:
    gc.collect()
    before = len(handles._adjoints)
    y, h, given = solved()
    assert len(handles._adjoints) == before + 1
    torch.autograd.grad(y, given, h)
    assert len(handles._adjoints) == before  # the freed graph releases its grid
    y, h, given = solved()
    del y, given
    assert len(handles._adjoints) == before


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_backward_without_the_kept_grid_builds_it_again(create_graph: bool) -> None:
    y, h, given = solved()
    expected = torch.autograd.grad(y, given, h, create_graph=create_graph)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda value: value):
        y, h, given = solved()
    found = torch.autograd.grad(y, given, h, create_graph=create_graph)
    assert_all_close(found, expected, rtol=1e-6, atol=1e-9)


def test_a_changed_reference_is_a_new_grid() -> None:
    """A reference that NumPy changes in place has the same address and the same version."""
    pixels = np.zeros((1, 8, 16), np.float32)
    photo, target = torch.from_numpy(pixels), torch.arange(16.0).expand(1, 8, 16)
    flat = bilateral.torch.solve(photo, target, sigma_xy=2, smoothness=50.0)
    pixels[:, :, 8:] = 1
    edge = bilateral.torch.solve(photo, target, sigma_xy=2, smoothness=50.0)
    assert edge[0, 0, 8] - edge[0, 0, 7] > 2 > flat[0, 0, 8] - flat[0, 0, 7]


MEMORY = """
import resource, sys
import torch
import bilateral.torch
steps, calls, backward = (int(argument) for argument in sys.argv[1:])
photo = torch.rand(1, 3, 24, 32)
target = torch.rand(1, 1, 24, 32, requires_grad=True)
options = dict(tolerance=0.0, max_iterations=steps, preconditioner="jacobi")
def call():
    y = bilateral.torch.solve(photo, target, **options)
    if backward:
        y.sum().backward()
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
for _ in range(20):
    call()
before = resident()
for _ in range(calls):
    call()
print(resident() - before)
"""


def growth(steps: int, calls: int, backward: bool) -> int:
    command = [sys.executable, "-c", MEMORY, str(steps), str(calls), str(int(backward))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.stress
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's /proc")
def test_a_thousand_calls_do_not_grow_the_memory() -> None:
    assert growth(2, 1000, backward=False) < 4e6  # the size of a few grids
    assert growth(2, 100, backward=True) < 4e6


def test_threads_may_share_a_graph() -> None:
    y, h, given = solved()
    expected = torch.autograd.grad(y, given, h, retain_graph=True)
    results: list[Any] = [None] * 4

    def run(i: int) -> None:
        results[i] = torch.autograd.grad(y, given, h, retain_graph=True)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in results:
        assert_all_close(found, expected, rtol=1e-7, atol=1e-12)


def test_without_pytorch_the_extra_is_named() -> None:
    script = "import sys; sys.modules['torch'] = None; import bilateral.torch"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode != 0
    assert "pip install 'bilateral[torch]'" in done.stderr


def test_the_gradient_operator_refuses_to_be_differentiated() -> None:
    """The operator computes first derivatives only and refuses second ones."""
    photo, target, confidence, smoothness = example()
    y, handle = operators.solve(photo, target, confidence, smoothness, None, *OPTIONS.arguments)
    h = target.clone().requires_grad_()
    given = handle, photo, h, confidence, smoothness, target, y, [True, False, False]
    of_target, _, _ = operators.gradients(*given, *OPTIONS.arguments)
    with pytest.raises(RuntimeError, match="autograd"):
        of_target.sum().backward()


def test_fused_and_composed_first_derivatives_agree() -> None:
    """With create_graph the derivatives use several operators, otherwise a fused one."""
    y, h, given = solved()
    fused = torch.autograd.grad(y, given, h, retain_graph=True)
    composed = torch.autograd.grad(y, given, h, create_graph=True)
    assert_all_close(fused, composed, rtol=1e-6, atol=1e-8)


class Head(torch.nn.Module):
    """The end of a network: the layer with a photograph."""

    def __init__(self) -> None:
        super().__init__()
        self.solver = BilateralSolver(sigma_xy=4)

    def forward(self, photo: Tensor, raw: Tensor) -> Tensor:
        smooth: Tensor = self.solver(photo, raw)
        return smooth


def test_an_exported_network_solves_other_sizes_after_a_round_trip() -> None:
    photo, raw, *_ = example()
    sides = {2: torch.export.Dim("height"), 3: torch.export.Dim("width")}
    program = torch.export.export(
        Head(), (photo, raw), dynamic_shapes={"photo": sides, "raw": sides}
    )
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    photo, raw = photo[..., :17, :19], raw[..., :17, :19]
    assert torch.equal(loaded(photo, raw), Head()(photo, raw))


def test_a_trace_that_would_store_the_result_is_refused() -> None:
    photo, raw, *_ = example()
    with pytest.raises(RuntimeError, match=r"cannot be traced.*torch\.export"):
        torch.jit.trace(Head(), (photo, raw))
