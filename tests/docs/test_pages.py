"""The code of the guides runs, and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilateral

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    path
    for path in (DOCS / "quickstart.md", *DOCS.glob("guides/*.md"), *DOCS.glob("explanation/*.md"))
    if "```python\n" in path.read_text()
)
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
"""A block of code, and the block of its output if one follows. "python no-run" does not match."""


def names() -> dict[str, Any]:
    """Inputs that the pages use without making them: a box before a wall, and its photograph."""
    rng = np.random.default_rng(0)
    shape = (96, 128)
    photo = np.full((*shape, 3), (120, 90, 60), np.uint8)
    photo[24:72, 32:88] = (40, 160, 200)
    photo += rng.integers(0, 12, photo.shape, dtype=np.uint8)
    depth = np.where(photo[..., 2] > 120, 1.5, 3.0).astype(np.float32)
    depth[40:50, 60:70] = np.nan
    sparse = np.where(rng.random(shape) < 0.1, depth, np.nan)
    whole = np.where(np.isnan(depth), 1.5, depth)
    gray = photo[..., 0]
    marked = np.repeat(gray[..., np.newaxis], 3, axis=2)
    marked[30:34, 40:60], marked[80:84, 20:60] = (30, 60, 220), (200, 60, 30)
    layer = np.concatenate([marked, np.uint8(255) * (marked != gray[..., np.newaxis])[..., :1]], 2)
    scores = np.stack([whole, 4 - whole], axis=2)[::8, ::8]
    left = rng.integers(0, 256, (*shape, 3), np.uint8)
    grid = bilateral.BilateralGrid(photo)
    return {
        "bilateral": bilateral,
        "np": np,
        "photo": photo,
        "depth": depth,
        "raw": depth,
        "target": depth,
        "confidence": np.ones(shape),
        "millimetres": (1000 * np.nan_to_num(depth)).astype(np.uint16),
        "depths": np.nan_to_num(np.stack([depth] * 4)),
        "photos": np.stack([photo] * 4),
        "camera": [(np.nan_to_num(depth), photo)] * 2,
        "video": np.stack([photo] * 4),
        "features": photo.astype(float),
        "rough": photo[..., 2] > 120,
        "scribbles": np.sign(photo[..., 2].astype(int) - 120) * (rng.random(shape) < 0.02),
        "sigmas": (8, 8, 8),
        "sigma_space": 8,
        "points": sparse,
        "sparse": sparse,
        "sparse_depth": sparse,
        "sparse_disparity": sparse,
        "metric": sparse,
        "relative": 1 / whole,
        "disparity": 20 / whole,
        "left": left,
        "right": np.roll(left, -7, axis=1),
        "focal_length": 500.0,
        "baseline": 0.1,
        "low": whole[::4, ::4],
        "scores": scores,
        "logits": scores,
        "gray": gray,
        "marked": marked,
        "layer": layer,
        "other_layer": layer,
        "frames": [gray] * 6,
        "gray_frames": [gray] * 6,
        "attention": (whole < 2).astype(float),
        "solver": bilateral.BilateralSolver(grid),
        "grid": grid,
        "truth": whole,
    }


def tensors(given: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of the layer as tensors of one image."""
    import torch

    names = ("raw", "confidence", "points", "truth")
    maps = {name: torch.tensor(given[name])[None, None] for name in names}
    maps["depth_lowres"] = torch.tensor(given["low"])[None, None]
    return maps | {"photo": torch.tensor(given["photo"]).permute(2, 0, 1)[None]}


@pytest.mark.parametrize("page", PAGES, ids=[path.stem for path in PAGES])
def test_the_code_runs_and_prints_what_the_page_says(page: Path) -> None:
    for package in ("torch", "xarray", "dask"):
        if f"import {package}" in page.read_text() or f"bilateral.{package}" in page.read_text():
            pytest.importorskip(package, reason=f"the page uses {package}")
    given = names()
    if page.stem == "pytorch":
        given |= tensors(given)
    for code, printed in BLOCK.findall(page.read_text()):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(page), "exec"), given)
        if printed:
            assert out.getvalue() == printed
