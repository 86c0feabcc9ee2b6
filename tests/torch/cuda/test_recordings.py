"""Recordings without a GPU: replays run their functions in Triton's interpreter."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from support.eager_graphs import use_eager_graphs
from support.kernel_device import COMPILED

# isort: split
import torch

from bilateral.backends.cuda.multigrid import hierarchy
from bilateral.backends.cuda.solve.report import DIVERGED
from bilateral.torch.cuda import capacity, device_memory, graphs, recording, recording_cache
from bilateral.torch.cuda import operators as cuda_operators
from bilateral.torch.cuda.adjoint import gradients, solve_adjoint
from bilateral.torch.cuda.solve import Inputs, solve
from support.layers import layer_options

BLUR = (2.0, 1.0, 0.125)
pytestmark = pytest.mark.interpreter


@pytest.fixture
def eager_graphs(monkeypatch):
    use_eager_graphs(monkeypatch)


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
    options = layer_options((3.0, 64.0, 64.0), 1e-4, 40, "multigrid")
    first, second = some_inputs(14, sparse), some_inputs(15, sparse)
    recordings = recording_cache.RecordingSet(options, list)
    solved = []
    for inputs in (first, second):  # the first makes the recording, the second replays it
        x, outcome, replayed = recordings.solve(inputs)
        expected, system, plain = solve(inputs, options)
        assert outcome.converged
        assert plain.converged
        assert_array_equal(x, expected)
        solved.append((replayed, system))
    assert system.kind == ("multigrid" if sparse else "pyramid")
    kinds = ["pyramid", "multigrid"] if sparse else ["pyramid"]
    assert list(recordings.by_preconditioner) == kinds
    gradients_are_the_plain_ones(*solved[0], first, options)


def gradients_are_the_plain_ones(replayed, system, inputs, options):
    """Also after another solve replayed the recording: it solves again first."""
    _, values, weights, _ = inputs
    h = torch.from_numpy(np.random.default_rng(16).normal(size=(24, 1)))
    needed = True, True, True
    z, outcome = solve_adjoint(system, h, options.solve.tolerance)
    assert outcome.converged
    expected = gradients(system, z, values, weights, needed)
    with replayed.recording(inputs) as made:
        z, outcome = made.solve_adjoint(h)
        assert outcome.converged
        found = gradients(made.system, z, values, weights, needed)
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("eager_graphs")
def test_a_recording_refuses_inputs_that_it_does_not_serve():
    options = layer_options((3.0, 64.0, 64.0), 1e-3, 2, "pyramid")
    recordings, inputs = recording_cache.RecordingSet(options, list), some_inputs(14, False)
    assert recordings.solve(inputs) is not None
    made = recordings.by_preconditioner["pyramid"]
    rooms, suitable = made.capacity.grid, made._suitable_preconditioner
    assert suitable([*rooms, 1, 0, 0, 0, 0, 50.0, 0, 0], 1.0) is None
    assert suitable([*rooms, 0, 0, 0, 0, 0, 50.0, 0, 1], 1.0) is None
    assert not made.outgrown
    assert suitable([9**9, *rooms[1:], 0, 0, 0, 0, 0, 50.0, 0, 0], 1.0) is None
    assert made.outgrown
    made.outgrown = False
    inputs.values[3] = np.nan
    assert recordings.solve(inputs) is None


@pytest.mark.smoke
@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("eager_graphs")
def test_a_recording_outlives_inference_mode():
    options = layer_options((3.0, 64.0, 64.0), 1e-3, 1, "pyramid")
    recordings = recording_cache.RecordingSet(options, list)
    with torch.inference_mode():
        reference = torch.zeros(1, 1, 2, 3, dtype=torch.uint8)
        values = torch.arange(6.0)[:, None]
        inputs = Inputs(reference, values, None, 1.0)
        found = recordings.solve(inputs)
    with found.replayed.recording(inputs) as made:
        made.solve_adjoint(values.clone())
    assert recordings.solve(Inputs(reference.clone(), values.clone(), None, 2.0)) is not None
    with torch.inference_mode():
        assert recordings.solve(inputs._replace(smoothness=3.0)) is not None


@pytest.mark.smoke
@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("eager_graphs")
def test_a_key_leads_to_the_recordings_of_its_kind():
    reference = torch.zeros(1, 1, 2, 3, dtype=torch.uint8)
    target, confidence = torch.arange(6.0).view(1, 1, 2, 3), torch.ones(1, 1, 2, 3)
    options = layer_options((3.0, 64.0, 64.0), 0.0, 1, "pyramid")
    smoothness = torch.tensor(2.0)
    warned = []

    def infer(values):
        tensors = reference, values, confidence, smoothness
        return cuda_operators.infer(lambda *_: warned.append("infer"), *tensors, options)

    def plain(values):
        batch = Inputs(reference, values.view(-1, 1), confidence.view(-1, 1), 2.0)
        x, _, _ = solve(batch, options)
        return x.view(values.shape)

    recording_cache.forget()
    key = cuda_operators.recording_key(reference, target, confidence, options)
    inputs = Inputs(reference, target.view(-1, 1), confidence.view(-1, 1), 2.0)
    assert infer(target) is None  # which is not remembered
    assert not recording_cache.recording_sets()
    assert recording_cache.solve(inputs, options) is None  # which is
    (cache,) = recording_cache._caches.values()
    assert list(cache.sets) == [key]
    assert torch.equal(infer(target), plain(target))
    other = inputs._replace(values=3 - 2 * inputs.values)
    found = cuda_operators.infer_again(lambda *_: warned.append("again"), key, options, *other)
    assert torch.equal(found.view(target.shape), plain(3 - 2 * target))
    assert not torch.equal(found.view(target.shape), plain(target))
    assert warned == ["infer", "again"]
    device_memory.free_memory(target.device)
    assert not any(found.by_preconditioner for found in recording_cache.recording_sets())
    recording_cache.forget()


@pytest.mark.smoke
@pytest.mark.parametrize(("devices", "wait"), [((0, 1), False), ((0, 0), True)])
def test_only_threads_that_use_the_same_device_wait_for_each_other(monkeypatch, devices, wait):
    both_inside = threading.Barrier(2)
    met = []

    class Meeting:
        """Recordings whose solve lasts until another thread solves, too, or for a while."""

        def __init__(self, *_):
            self.by_preconditioner = {}

        def solve(self, *_):
            try:
                both_inside.wait(0.5 if wait else 20)
            except threading.BrokenBarrierError:
                return
            met.append(True)

    monkeypatch.setattr(recording_cache, "RecordingSet", Meeting)
    monkeypatch.setattr(recording_cache, "_caches", {})
    options = layer_options((3.0, 64.0, 64.0), 1e-3, 1, "pyramid")

    def solve(device):
        like = {
            "shape": (1, 1, 2, 3),
            "dtype": torch.float32,
            "device": torch.device("cuda", device),
        }
        tensor = SimpleNamespace(**like)
        for _ in range(2):  # the second call has a recording
            recording_cache.solve(Inputs(tensor, tensor, None, 1.0), options)

    threads = [threading.Thread(target=solve, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recording_cache.recording_sets()) == len(set(devices))
    assert met == ([] if wait else [True, True])


@pytest.mark.skipif(COMPILED, reason="only the interpreter can look at addresses")
@pytest.mark.parametrize(("kind", "seed"), [("pyramid", 0), ("multigrid", 1)])
@pytest.mark.usefixtures("eager_graphs")
def test_a_recording_that_is_outgrown_stays_within_its_memory(monkeypatch, kind, seed):
    """It tells so afterwards: before, everything was computed, and had to stay in bounds."""
    from support.memory_check import within_bounds

    monkeypatch.setattr(capacity, "_MIN_ROOM", 4)
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
        made._compute_grid_results()
        made._splat_values()
        made._start(1)
        facts = made._report.tolist()[:DIVERGED]
    assert made._suitable_preconditioner(facts, 1.0) is None
    assert made.outgrown


@pytest.mark.smoke
@pytest.mark.usefixtures("eager_graphs")
def test_a_report_of_divergence_is_no_convergence():
    steps = graphs.Steps("pyramid", 3, lambda _: None, lambda _: None, None)
    for diverged in (0.0, 1.0):
        report = [0.0] * DIVERGED + [diverged, 1.0, 0.1, 0.01, 0.001]
        outcome, _ = steps.finish(report, list)
        assert outcome == ([0.1, 0.01, 0.001], not diverged, bool(diverged))
