"""The examples run: a few steps of what they do, without their pictures."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the examples have networks of PyTorch")

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads that wait for each other are slow where other tests run beside this one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_confidence_is_learned_through_the_solver() -> None:
    example = load("learn_confidence")
    torch.manual_seed(0)
    photo, raw, truth = example.scenes(6, seed=10**6)
    model = example.Solved()
    with torch.no_grad():
        before = example.error(model(photo, raw), truth)
    losses = example.train(model, steps=40, batch=2)
    with torch.no_grad():
        after = example.error(model(photo, raw), truth)
    assert len(losses) == 40
    assert after < 0.95 * before
    assert before < example.error(raw, truth)
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())


@pytest.mark.usefixtures("one_thread")
def test_a_networks_labels_are_refined() -> None:
    example = load("refine_segmentation")
    photo, truth = example.made()
    before, after = example.segment(example.StandIn(example.COLOURS), photo)
    assert before.shape == after.shape == truth.shape
    wrong_before, wrong_after = ((labels != truth).sum() for labels in (before, after))
    assert wrong_after < 0.5 * wrong_before
