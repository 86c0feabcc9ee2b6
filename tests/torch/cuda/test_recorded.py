"""Recorded functions: replays compute from copies of the arguments, and hand out copies."""

from typing import NamedTuple

import pytest

pytest.importorskip("triton", reason="recordings need Triton")

from support.eager_graphs import EagerGraph, use_eager_graphs
from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

from bilateral.torch.cuda import device_memory, recorded

CALLS = []


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor | None
    name: str


@recorded.recorded
def combine(pair: Pair, factor: float, *, more: torch.Tensor | None = None):
    """Return nested results, one of which is an argument's memory."""
    CALLS.append(pair.first)
    total = pair.first * factor
    if pair.second is not None:
        total = total + pair.second
    if more is not None:
        total = total - more
    return Pair(total, pair.first, pair.name), (total.sum(), None, 3)


@pytest.fixture(autouse=True)
def recordings(monkeypatch):
    if not COMPILED:
        use_eager_graphs(monkeypatch)
    recorded.forget()
    CALLS.clear()
    yield
    assert not recorded.failures
    recorded.forget()


def tensor(*values):
    return torch.tensor(values, device=DEVICE)


def check(first, second, factor, **more):
    expected = first * factor + (0 if second is None else second) - more.get("more", 0)
    pair, (total, nothing, number) = combine(Pair(first, second, "p"), factor, **more)
    assert torch.equal(pair.first, expected)
    assert torch.equal(pair.second, first)
    assert (pair.name, nothing, number) == ("p", None, 3)
    assert torch.equal(total, expected.sum())
    return pair


def test_results_are_those_of_the_function_and_last():
    results = []
    for k in range(4):
        first = tensor(1.0 + k, 2.0, 4.0)
        results.append((first, check(first, tensor(k, 0.5, 0.25), 2.0)))
    assert len(recorded.recordings()) == 1
    for k, (first, pair) in enumerate(results):
        assert torch.equal(pair.second, first), k
    assert CALLS[0] is results[0][0]  # the first call needs no recording
    assert all(own.data_ptr() != first.data_ptr() for own in CALLS[1:] for first, _ in results)


def test_each_kind_of_call_has_its_recording():
    for _ in range(3):
        check(tensor(1.0, 2.0), None, 2.0)
        check(tensor(1.0, 2.0), None, 3.0)
        check(tensor(1.0, 2.0, 3.0), None, 2.0)
        check(tensor(1.0, 2.0).double(), None, 2.0)
        check(tensor(1.0, 2.0), tensor(1.0, 1.0), 2.0)
        check(tensor(1.0, 2.0), None, 2.0, more=tensor(3.0, 4.0))
        check(tensor(1.0, 0.0, 2.0, 0.0)[::2], None, 2.0)  # as the first
    assert recorded.recordings() == ["combine"] * 6


def test_few_recordings_are_kept(monkeypatch):
    monkeypatch.setattr(recorded, "_MAX_RECORDINGS", 2)
    monkeypatch.setattr(recorded, "_MAX_REMEMBERED", 3)
    for factor in (1.0, 2.0, 3.0):
        for _ in range(2):
            check(tensor(1.0, 2.0), None, factor)
    assert len(recorded.recordings()) == 2
    for factor in (4.0, 5.0, 6.0):
        check(tensor(1.0, 2.0), None, factor)
    assert not recorded.recordings()


def test_memory_is_given_back():
    for _ in range(2):
        check(tensor(1.0, 2.0), None, 2.0)
    device_memory.free_memory(torch.device(tensor(1.0).device))
    assert not recorded.recordings()
    check(tensor(1.0, 2.0), None, 2.0)
    assert recorded.recordings() == ["combine"]


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
def test_without_memory_the_function_is_called(monkeypatch):
    class Full(EagerGraph):
        def __init__(self, *_, **__):
            raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(recorded, "Graph", Full)
    for _ in range(3):
        check(tensor(1.0, 2.0), None, 2.0)
    assert not recorded.recordings()
    assert len(CALLS) == 3


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
def test_what_cannot_be_recorded_is_called_and_told(monkeypatch):
    class Waits(EagerGraph):
        def __init__(self, *_, **__):
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(recorded, "Graph", Waits)
    monkeypatch.setattr(recorded, "failures", [])
    for _ in range(3):
        check(tensor(1.0, 2.0), None, 2.0)
    assert [name for name, _ in recorded.failures] == ["combine"]
    recorded.failures.clear()


def test_recordings_outlive_inference_mode():
    with torch.inference_mode():
        for _ in range(2):
            check(tensor(1.0, 2.0), None, 2.0)
    check(tensor(3.0, 2.0), None, 2.0)
    with torch.inference_mode():
        check(tensor(5.0, 2.0), None, 2.0)


@pytest.mark.skipif(not COMPILED, reason="needs a GPU")
def test_streams_wait_for_the_memory():
    expected = [torch.full((1 << 20,), float(k), device=DEVICE) for k in range(8)]
    for _ in range(2):
        combine(Pair(expected[0], None, "p"), 2.0)
    streams = [torch.cuda.Stream() for _ in expected]
    torch.cuda.synchronize()
    found = []
    for k, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            found.append(combine(Pair(expected[k], None, "p"), 2.0)[0].first)
    torch.cuda.synchronize()
    for k, total in enumerate(found):
        assert torch.equal(total, 2 * expected[k])
