"""The example programs work: the main steps of each one run, without the pictures."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROGRAMS = Path(__file__).parent.parent / "examples" / "programs"


def load(name: str) -> Any:
    """Import an example by its name."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_points_of_a_colmap_model_have_their_depth(tmp_path: Path) -> None:
    example = load("colmap_points")
    # A quarter turn about y: the camera looks along -x of the world.
    pose = "1 0.70710678 0 0.70710678 0 0 0 5 1 two words.jpg"
    (tmp_path / "images.txt").write_text(f"# list\n{pose}\n10.5 20.5 7 3 4 -1 30.5 8.5 9\n")
    (tmp_path / "points3D.txt").write_text("# list\n7 2 0 0 9 9 9 .1 1 0\n9 -1 3 4 0 0 0 .1 1 1\n")
    points = example.read_points(tmp_path, "two words.jpg")
    np.testing.assert_allclose(points, [[10, 20, 3], [30, 8, 6]], atol=1e-6)
    depth = example.scatter(points, (24, 32))
    assert (depth[20, 10], depth[8, 30], (depth > 0).sum()) == (3, 6, 2)


@pytest.fixture
def torch() -> Iterator[Any]:
    """PyTorch with one thread: threads that wait for each other slow down parallel tests."""
    torch = pytest.importorskip("torch", reason="the example has a network of PyTorch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(before)


def test_a_confidence_is_learned_through_the_solver(torch: Any) -> None:
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


@pytest.mark.usefixtures("torch")
def test_a_networks_labels_are_refined() -> None:
    example = load("refine_segmentation")
    photo, truth = example.synthetic_picture()
    before, after = example.segment(example.ColourClassifier(example.COLOURS), photo)
    assert before.shape == after.shape == truth.shape
    wrong_before, wrong_after = ((labels != truth).sum() for labels in (before, after))
    assert wrong_after < 0.5 * wrong_before
