# ruff: noqa: E402
"""Solves that are replayed from recordings, and what only a GPU can show.

Without one nothing is replayed: what would be recorded runs in Triton's interpreter.
"""

import os
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

torch = pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
COMPILED = torch.cuda.is_available()
if not COMPILED and os.environ.get("TRITON_INTERPRET") != "1":  # see conftest.py
    pytest.skip("no GPU that PyTorch can use, and no interpreter", allow_module_level=True)
pytest.importorskip("triton", reason="the kernels need Triton")

import bilateral.torch
from bilateral.backends.cuda.multigrid import hierarchy
from bilateral.torch import fast_path
from bilateral.torch import inputs as shapes
from bilateral.torch.cuda import graphs, recording
from bilateral.torch.cuda import operators as device_operators
from bilateral.torch.cuda import recording_cache as replay
from bilateral.torch.cuda import system as device
from bilateral.torch.cuda.system import Inputs
from support.layers import layer_options

BLUR = (2.0, 1.0, 0.125)
pytestmark = pytest.mark.interpreter


class EagerGraph:
    """Stand-in for `Graph` without a GPU: each replay calls the function."""

    def __init__(self, function, pool=None, *, ready=False):
        if not ready:
            function()
        self.pool, self.replay = pool, function


class NoStream:
    """Stand-in for CUDA streams and events, which have nothing to wait for."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __getattr__(self, _):
        return lambda *_, **__: None


@pytest.fixture
def eager_graphs(monkeypatch):
    """Recordings without a GPU: a replay computes everything from the recording's memory."""
    for module in (graphs, recording):
        monkeypatch.setattr(module, "Graph", EagerGraph)
    for name in ("Event", "Stream", "current_stream", "stream"):
        monkeypatch.setattr(torch.cuda, name, NoStream)


def some_inputs(seed, sparse):
    """A gray image of 4 x 6 pixels with one channel of values."""
    rng = np.random.default_rng(seed)
    reference = (rng.integers(0, 6, (1, 1, 4, 6)) * 45).astype(np.uint8)
    values, weights = rng.normal(size=(24, 1)), rng.uniform(0.5, 1, (24, 1))
    if sparse:
        weights *= rng.random((24, 1)) < 0.2
        weights[seed] = 1
    return Inputs(*map(torch.from_numpy, (reference, values, weights)), 1.0)


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.usefixtures("eager_graphs")
def test_a_replay_is_the_plain_solve_of_its_inputs(sparse):
    options = device.Options((3.0, 64.0, 64.0), BLUR, None, 1e-4, 40, "multigrid", False)
    first, second = some_inputs(14, sparse), some_inputs(15, sparse)
    recorder = replay.Recorder(options)
    solved = []
    for inputs in (first, second):  # the first makes the recording, the second replays it
        x, outcome, ticket = recorder.solve(inputs)
        where = device.space(inputs.reference, options)
        expected, problem, plain = device.solve(where, *inputs[1:], options)
        assert outcome.converged
        assert plain.converged
        assert_array_equal(x, expected)
        solved.append((ticket, problem))
    assert problem.kind == ("multigrid" if sparse else "pyramid")
    assert list(recorder.recordings) == (["pyramid", "multigrid"] if sparse else ["pyramid"])
    gradients_are_the_plain_ones(*solved[0], first, options)


def gradients_are_the_plain_ones(ticket, problem, inputs, options):
    """Also after another solve replayed the recording: it solves again first."""
    _, values, weights, _ = inputs
    h = torch.from_numpy(np.random.default_rng(16).normal(size=(24, 1)))
    wanted = True, True, True
    z, outcome = problem.inverse(h, options.solve.tolerance)
    assert outcome.converged
    expected = device.gradients(problem, z, values, weights, wanted)
    with ticket.recording(inputs) as made:
        z, outcome = made.inverse(h)
        assert outcome.converged
        found = device.gradients(made.problem, z, values, weights, wanted)
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("eager_graphs")
def test_a_recording_refuses_inputs_that_it_does_not_serve():
    options = device.Options((3.0, 64.0, 64.0), BLUR, None, 1e-3, 2, "pyramid", False)
    recorder, inputs = replay.Recorder(options), some_inputs(14, False)
    assert recorder.solve(inputs) is not None
    made = recorder.recordings["pyramid"]
    assert made._judge([*made.rooms.grid, 1, 0, 0, 0, 0, 50.0, 0, 0], 1.0) is None
    assert made._judge([*made.rooms.grid, 0, 0, 0, 0, 0, 50.0, 0, 1], 1.0) is None
    assert not made.outgrown
    assert made._judge([9**9, *made.rooms.grid[1:], 0, 0, 0, 0, 0, 50.0, 0, 0], 1.0) is None
    assert made.outgrown
    made.outgrown = False
    inputs.values[3] = np.nan
    assert recorder.solve(inputs) is None


@pytest.mark.smoke
@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("eager_graphs")
def test_a_recording_outlives_inference_mode():
    options = layer_options((3.0, 64.0, 64.0), 1e-3, 1, "pyramid")
    recorder = replay.Recorder(options)
    with torch.inference_mode():
        reference = torch.zeros(1, 1, 2, 3, dtype=torch.uint8)
        values = torch.arange(6.0)[:, None]
        inputs = Inputs(reference, values, None, 1.0)
        found = recorder.solve(inputs)
    with found.ticket.recording(inputs) as made:
        made.inverse(values.clone())
    assert recorder.solve(Inputs(reference.clone(), values.clone(), None, 2.0)) is not None
    with torch.inference_mode():
        assert recorder.solve(inputs._replace(smoothness=3.0)) is not None


@pytest.mark.smoke
@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("eager_graphs")
def test_a_key_leads_to_the_recordings_of_its_kind():
    reference = torch.zeros(1, 1, 2, 3, dtype=torch.uint8)
    target, confidence = torch.arange(6.0).view(1, 1, 2, 3), torch.ones(1, 1, 2, 3)
    config = (3.0, 64.0, 64.0), BLUR, None, 0.0, 1, "pyramid", False
    options, smoothness = device.Options(*config), torch.tensor(2.0)
    warned = []

    def infer(values):
        tensors = reference, values, confidence, smoothness
        return device_operators.infer(lambda *_: warned.append("infer"), *tensors, *config)

    def plain(values):
        where = device.space(reference, options)
        x, _, _ = device.solve(where, values.view(-1, 1), confidence.view(-1, 1), 2.0, options)
        return x.view(values.shape)

    replay._seen.clear()
    key = device_operators.recording_key(reference, target, confidence, *config)
    inputs = Inputs(reference, target.view(-1, 1), confidence.view(-1, 1), 2.0)
    assert infer(target) is None  # which is not remembered
    assert not replay._seen
    assert replay.solve(inputs, options) is None  # which is
    assert list(replay._seen) == [key]
    assert torch.equal(infer(target), plain(target))
    other = inputs._replace(values=3 - 2 * inputs.values)
    found = device_operators.infer_again(lambda *_: warned.append("again"), key, config, *other)
    assert torch.equal(found.view(target.shape), plain(3 - 2 * target))
    assert not torch.equal(found.view(target.shape), plain(target))
    assert warned == ["infer", "again"]
    replay.forget()
    replay._seen.clear()


@pytest.mark.skipif(COMPILED, reason="only the interpreter can look at addresses")
@pytest.mark.parametrize(("kind", "seed"), [("pyramid", 0), ("multigrid", 1)])
@pytest.mark.usefixtures("eager_graphs")
def test_a_recording_that_is_outgrown_stays_within_its_memory(monkeypatch, kind, seed):
    """It tells so afterwards: before, everything was computed, and had to stay in bounds."""
    from support.memory_check import within_bounds

    monkeypatch.setattr(recording, "_LEAST_ROOM", 4)
    monkeypatch.setattr(hierarchy, "_SMALL_LEVEL_ROWS", 6)
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:14, :18]

    def inputs(noise):
        picture = 60 + 2 * x + y + rng.normal(0, noise, (1, 3, 14, 18))
        values, weights = rng.random((2, 14 * 18, 1))
        made = picture.clip(0, 255).astype(np.uint8), values, weights * (weights > 0.9)
        return Inputs(*map(torch.from_numpy, made), 1.0)

    options = layer_options((4.0, 8.0, 8.0), 1e-3, 1, kind)
    with within_bounds(monkeypatch):
        made = recording.Recording(inputs(2), options, kind, None)
        for there, given in zip(
            (made._reference, made._values, made._weights), inputs(20)[:3], strict=True
        ):
            there.copy_(given)
        made._build_grid()
        made._complete_space()
        made._take_values()
        made._begin(1)
        *facts, _ = made._report.tolist()[: recording.HEADER]
    assert made._judge(facts, 1.0) is None
    assert made.outgrown


@contextmanager
def little_memory(more):
    """No more than so many bytes beyond those in use."""
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + more
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.skipif(not COMPILED, reason="needs a GPU")
class TestOnAGpu:
    """What only the real thing can show."""

    @pytest.mark.parametrize("sigma_xy", [8, 20])
    def test_public_function_agrees_and_repeats(self, sigma_xy):
        torch.manual_seed(0)
        reference = (torch.rand(3, 3, 97, 130) * 255).to(torch.uint8) // 32 * 32
        target, c = torch.randn(3, 2, 97, 130), torch.rand(3, 1, 97, 130)
        for weights in (None, c, c * (c > 0.97)):
            on = [None if t is None else t.cuda() for t in (reference, target, weights)]
            options = {"sigma_xy": sigma_xy, "tolerance": 1e-6}
            x = bilateral.torch.solve(reference, target, weights, **options)
            y = bilateral.torch.solve(*on, **options)
            assert y.is_cuda
            assert (x - y.cpu()).norm() < 1e-4 * x.norm()
            assert torch.equal(y, bilateral.torch.solve(*on, **options))

    def test_recordings_are_the_plain_solve(self):
        torch.manual_seed(1)
        noise = torch.rand(2, 1, 3, 140, 190, device="cuda") * 255
        references = noise.to(torch.uint8) // 16 * 16
        target, c = torch.rand(2, 1, 1, 140, 190, device="cuda")
        few, holes = (c > 0.97).float(), torch.ones_like(c)
        holes[..., 30:90, 40:120] = 0
        calls = list(product(references, [target], (c, few, holes)))
        plain = []
        for call in calls:
            replay._seen.clear()
            plain.append(bilateral.torch.solve(*call))
        for _ in range(3):  # all by the same recorder
            for call, expected in zip(calls, plain, strict=True):
                assert torch.equal(bilateral.torch.solve(*call), expected)
        (recorder,) = replay._seen.values()
        assert set(recorder.recordings) == {"pyramid", "multigrid"}

    @pytest.mark.parametrize(
        ("like", "options"),
        [
            ({}, {"sigma_xy": 20}),
            ({}, {"sigma_xy": 0.7}),
            ({}, {"sigma_xy": 40, "sigma_luma": 3, "sigma_chroma": 2}),
            ({"reference": torch.float32}, {"sigma_xy": 33.3}),
            ({"reference": torch.float64, "target": torch.float64}, {}),
            ({"reference": torch.uint16}, {"sigma_luma": 0.5, "sigma_chroma": 0.5}),
            ({"colours": 1, "channels": 3}, {"blur": "uniform"}),
            ({"channels": 21}, {"preconditioner": "pyramid", "tolerance": 1e-2}),
            ({"images": 3, "channels": 5}, {"sigma_xy": 17, "preconditioner": "jacobi"}),
            ({"images": 4}, {"smoothness": 1000.0, "reference_max": 128.0}),
        ],
    )
    def test_recordings_of_all_kinds(self, like, options):
        torch.manual_seed(7)
        kinds = {"images": 1, "colours": 3, "channels": 1, "reference": torch.uint8, **like}
        levels = torch.rand(kinds["images"], kinds["colours"], 70, 90, device="cuda")
        levels = (8 * levels).floor() / 8
        kind = kinds["reference"]
        full = 1.0 if kind.is_floating_point else float(torch.iinfo(kind).max)
        reference = (full * levels).to(kind)
        dtype = kinds.get("target", torch.float32)
        target = torch.rand(kinds["images"], kinds["channels"], 70, 90, device="cuda", dtype=dtype)
        c = torch.rand(kinds["images"], 1, 70, 90, device="cuda", dtype=dtype)
        for weights in (None, c, (c > 0.95).to(dtype)):
            replay._seen.clear()
            expected = bilateral.torch.solve(reference, target, weights, **options)
            for _ in range(2):
                found = bilateral.torch.solve(reference, target, weights, **options)
                assert torch.equal(found, expected), (found - expected).abs().max()
            (recorder,) = replay._seen.values()
            assert recorder.recordings

    def test_calls_like_one_before_take_a_shorter_way(self, monkeypatch):
        torch.manual_seed(6)
        reference = (torch.rand(2, 3, 50, 60, device="cuda") * 255).to(torch.uint8) // 32 * 32
        target, c = torch.rand(2, 2, 1, 50, 60, device="cuda")
        calls = [
            {"target": target, "confidence": c},
            {"target": target},
            {"target": target[:, 0], "reference": reference[:1]},
            {"target": target, "confidence": c[:, 0]},
            {"target": target, "confidence": c, "smoothness": 9.0},
            {"target": target, "confidence": c, "smoothness": torch.tensor(4.0)},
            {"target": target.expand(-1, 3, -1, -1), "confidence": c},
            {"target": target.double(), "confidence": c.double()},
            {"target": (9 * target).int()},
            {"target": target, "reference": reference / 255.0, "confidence": c},
        ]
        calls = [{"reference": reference, **call} for call in calls]
        fast_path._routes.clear()
        taken = []
        for call in calls:
            with monkeypatch.context() as patch:  # never the way of a call before
                patch.setattr(fast_path.Call, "of", lambda *_: None)
                expected = bilateral.torch.solve(**call)
            for _ in range(3):
                found = bilateral.torch.solve(**call)
                assert found.dtype == expected.dtype
                assert torch.equal(found, expected)
            with monkeypatch.context() as patch:
                patch.setattr(shapes, "batch", None)  # which the usual way would call
                try:
                    assert torch.equal(bilateral.torch.solve(**call), expected)
                except TypeError:
                    taken.append(False)
                else:
                    taken.append(True)
        assert taken == [True, True, False, True, True, False, False, True, False, True]

    @pytest.mark.parametrize("sigma_xy", [8, 20])
    def test_recorded_gradients_are_the_plain_ones(self, sigma_xy):
        torch.manual_seed(3)
        reference = (torch.rand(1, 3, 90, 120, device="cuda") * 255).to(torch.uint8) // 32 * 32
        c, h = torch.rand(2, 1, 1, 90, 120, device="cuda")
        holes = torch.ones_like(c)
        holes[..., 30:80, 40:110] = 0
        targets = torch.rand(2, 1, 1, 90, 120, device="cuda")

        def solved(target, weights, robust):
            inputs = target.clone(), weights.clone(), torch.tensor(3.0).cuda()
            *maps, factor = inputs = [value.requires_grad_() for value in inputs]
            more = {"sigma_xy": sigma_xy, **({"iterations": 3} if robust else {})}
            solve = bilateral.torch.solve_robust if robust else bilateral.torch.solve
            return inputs, solve(reference, *maps, smoothness=factor, **more)

        def gradients(inputs, y):
            return torch.autograd.grad(y, inputs, h)

        for weights in (c, (c > 0.95).float(), holes):
            for robust in (False, True):
                plain = []
                for target in targets:
                    replay._seen.clear()
                    plain.append(gradients(*solved(target, weights, robust)))
                for order in ((0, 1), (1, 0), (1, 0)):  # of backwards, after both forwards
                    made = [solved(target, weights, robust) for target in targets]
                    for i in order:
                        for one, other in zip(gradients(*made[i]), plain[i], strict=True):
                            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)

    def test_training_follows_inference_mode(self):
        torch.manual_seed(7)
        reference, target = torch.rand(1, 1, 40, 50).cuda(), torch.rand(1, 1, 40, 50).cuda()
        replay._seen.clear()
        for _ in range(2):
            with torch.inference_mode():
                expected = [bilateral.torch.solve(reference, target) for _ in range(2)][-1]
            for smoothness in (4.0, 5.0):
                given = target.clone().requires_grad_()
                y = bilateral.torch.solve(reference, given, smoothness=smoothness)
                assert smoothness != 4 or torch.equal(y, expected)
                y.sum().backward()
                assert torch.isfinite(given.grad).all()

    def test_recorded_solves_have_second_derivatives(self):
        torch.manual_seed(4)
        reference = (torch.rand(1, 3, 6, 7, device="cuda") * 255).to(torch.uint8) // 64 * 64
        like = {"dtype": torch.float64, "device": "cuda"}
        target = torch.randn(1, 1, 6, 7, **like, requires_grad=True)
        c = torch.rand(1, 1, 6, 7, **like).add(0.1).requires_grad_()

        def solve(target, c):
            return bilateral.torch.solve(reference, target, c, sigma_xy=3, tolerance=1e-12)

        solve(target, c)
        assert torch.autograd.gradgradcheck(solve, (target, c))

    def test_values_that_are_not_finite_are_recorded_too(self):
        torch.manual_seed(5)
        reference = torch.rand(1, 1, 50, 60).cuda()
        target = torch.rand(1, 1, 50, 60).cuda()
        target[..., 10:20, 10:20] = torch.nan
        replay._seen.clear()
        plain = bilateral.torch.solve(reference, target)
        for _ in range(3):
            assert torch.equal(bilateral.torch.solve(reference, target), plain)
        (recorder,) = replay._seen.values()
        assert recorder.recordings

    def test_many_sizes(self):
        torch.manual_seed(2)
        for i in range(16):
            size = 40 + 3 * i, 75 - 2 * i
            reference = (torch.rand(1, 3, *size) * 255).to(torch.uint8) // 32 * 32
            target = torch.rand(1, 1, *size)
            x = bilateral.torch.solve(reference, target, tolerance=1e-6)
            y = bilateral.torch.solve(reference.cuda(), target.cuda(), tolerance=1e-6)
            assert (x - y.cpu()).norm() < 1e-4 * x.norm()

    def test_too_little_memory_is_torchs_error_and_the_next_call_works(self):
        replay._seen.clear()
        reference, target = torch.rand(1, 3, 64, 64).cuda(), torch.rand(1, 1, 64, 64).cuda()
        expected = bilateral.torch.solve(reference, target)
        large = torch.rand(1, 1, 2048, 2048).cuda()
        with little_memory(2**24):
            for _ in range(3):
                with pytest.raises(torch.OutOfMemoryError):
                    bilateral.torch.solve(large, large)
            assert torch.equal(bilateral.torch.solve(reference, target), expected)

    def test_recordings_give_way(self):
        replay.forget()
        large = torch.rand(1, 1, 1024, 1024).cuda()
        small = large[..., :400, :400].contiguous()
        scores = torch.rand(1, 3, 25, 25).cuda()
        calls = [
            lambda: bilateral.torch.solve(large, large),
            lambda: bilateral.torch.domain_transform(large, large, 8, 8),
            lambda: bilateral.torch.refine_segmentation(scores, small, logits=True),
        ]
        expected = [call() for call in calls]
        for call, known in zip(calls, expected, strict=True):
            replay._seen.clear()
            for side in (1023, 1022, 1021):
                image = large[..., :side, :side].contiguous()
                for _ in range(2):
                    bilateral.torch.solve(image, image)
            assert sum(bool(recorder.recordings) for recorder in replay._seen.values()) == 3
            with little_memory(2**20):
                assert torch.equal(call(), known)

    def test_gradcheck(self):
        torch.manual_seed(0)
        reference = (torch.rand(2, 3, 6, 7, device="cuda") * 255).to(torch.uint8) // 64 * 64
        like = {"dtype": torch.float64, "device": "cuda"}
        target = torch.randn(2, 2, 6, 7, **like, requires_grad=True)
        c = torch.rand(2, 1, 6, 7, **like).add(0.1).requires_grad_()
        smoothness = torch.tensor(2.0, **like, requires_grad=True)

        def solve(target, c, smoothness):
            return bilateral.torch.solve(
                reference, target, c, sigma_xy=3, smoothness=smoothness, tolerance=1e-12
            )

        assert torch.autograd.gradcheck(solve, (target, c, smoothness))
