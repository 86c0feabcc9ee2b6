"""Every example of the gallery runs, draws a picture, and is short."""

import ast
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/*.py"))


@pytest.fixture
def plots() -> Iterator[Any]:
    """Pyplot that draws into memory."""
    matplotlib = pytest.importorskip("matplotlib", reason="the examples draw with matplotlib")
    pytest.importorskip("skimage", reason="the pictures come with scikit-image")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_the_example_draws_a_picture(
    script: Path, plots: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "torch" in script.read_text():
        pytest.importorskip("torch", reason="the example is for PyTorch")
    monkeypatch.setattr(plots, "show", lambda: None)
    runpy.run_path(str(script))
    figure = plots.gcf()
    figure.canvas.draw()
    assert any(axis.images or axis.collections for axis in figure.axes)


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_the_example_is_short_and_has_a_title(script: Path) -> None:
    text = script.read_text()
    assert len(text.splitlines()) <= 40
    title, line, *_ = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert line == "=" * len(title)


def test_there_are_enough_examples() -> None:
    assert len(SCRIPTS) >= 14
