"""`colorize` of tensors: PyTorch's layout, the values of the CPU, and the kernels."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor

import bilateral.torch
from bilateral.tasks import colorize
from support.kernels import COMPILED, DEVICE, cpu_domain_transform, kernels_filter


def scene(shape: tuple[int, int] = (14, 18), seed: int = 0) -> tuple[Tensor, Tensor]:
    """A gray picture (1, H, W) with an edge and specks, and strokes painted on it (3, H, W)."""
    rng = np.random.default_rng(seed)
    width = shape[1]
    gray = np.where(np.arange(width) < width // 2, 80, 170) + rng.integers(-3, 4, shape)
    gray[rng.random(shape) < 0.05] = 120
    marked = np.stack([gray] * 3)
    marked[:, 2:5, 2:6] = np.array([170, 40, 40])[:, None, None]
    marked[:, 9:12, width - 5 : width - 2] = np.array([150, 170, 220])[:, None, None]
    pictures = gray[None].astype(np.uint8), marked.astype(np.uint8)
    return torch.from_numpy(pictures[0]), torch.from_numpy(pictures[1])


def array(image: Tensor) -> Any:
    return image.movedim(0, -1).squeeze(-1).numpy()


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_each_picture_is_colorized_as_an_array(preset: str) -> None:
    scenes = [scene(seed=seed) for seed in range(2)]
    gray, marked = torch.stack([s[0] for s in scenes]), torch.stack([s[1] for s in scenes])
    found = bilateral.torch.colorize(gray, marked, preset=preset)
    for i in range(2):
        expected = colorize(array(gray[i]), array(marked[i]), preset=preset)
        np.testing.assert_array_equal(array(found[i]), expected)
        alone = bilateral.torch.colorize(gray[i], marked[i], preset=preset)
        assert torch.equal(alone, found[i])


def test_layers_masks_and_dtypes() -> None:
    gray, marked = scene()
    mask = (marked != gray).any(0)
    layer = torch.cat([marked, 255 * mask[None].to(torch.uint8)])
    expected = bilateral.torch.colorize(gray, marked)
    assert torch.equal(bilateral.torch.colorize(gray, layer), expected)
    assert torch.equal(bilateral.torch.colorize(gray, marked, mask), expected)
    shared = bilateral.torch.colorize(torch.stack([gray, gray]), layer)
    assert torch.equal(shared[1], expected)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        found = bilateral.torch.colorize((gray / 255).to(dtype).requires_grad_(), layer)
        assert found.dtype == dtype
        assert not found.requires_grad
        assert (found.float() - expected / 255).abs().mean() < 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gray": np.zeros((14, 18))}, "gray: expected a tensor"),
        ({"gray": torch.zeros(2, 14, 18)}, "gray: expected 1 or 3 channels"),
        ({"gray": torch.full((1, 14, 18), 9.0)}, "gray: expected floating-point"),
        ({"gray": torch.full((1, 14, 18), torch.nan)}, "gray: expected finite"),
        ({"gray": torch.zeros(1, 14, 18, dtype=torch.int32)}, "gray: expected uint8"),
        ({"scribbles": torch.zeros(1, 14, 18)}, "scribbles: expected 3 or 4 channels"),
        ({"scribbles": torch.zeros(3, 14, 17)}, "scribbles: expected 14 x 18 pixels"),
        ({"scribbles": scene()[0].expand(3, -1, -1)}, "scribbles: expected at least one stroke"),
        ({"mask": torch.zeros(14, 18)}, "mask: expected bool or integers"),
        ({"preset": "good"}, "preset"),
        ({"sigma_luma": -1}, "sigma_luma"),
        ({"gray": scene()[1], "scribbles": scene()[0].expand(3, -1, -1)}, "swapped"),
    ],
)
@pytest.mark.parametrize(
    "kernels", [False, pytest.param(True, marks=pytest.mark.interpreter)], ids=["cpu", "kernels"]
)
def test_wrong_input(
    change: dict[str, Any], message: str, kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels:
        kernels_filter(monkeypatch)
    gray, marked = scene()
    given = {"gray": gray, "scribbles": marked, **change}
    if kernels:
        given = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.colorize(**given)


@pytest.mark.interpreter
class TestKernels:
    """The recipe with the kernels, in Triton's interpreter where there is no GPU."""

    @pytest.mark.parametrize(
        ("kind", "options"),
        [
            pytest.param("marked", {}, marks=pytest.mark.smoke),
            ("layer", {"sigma_xy": 6.0, "smoothness": 0.5}),
            ("mask", {"sigma_luma": 3.0}),
            ("marked", {"preset": "paper"}),
            ("float", {}),
            ("double", {"reference_max": 255.0}),
        ],
    )
    def test_colours_are_the_cpus(
        self, kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from bilateral.torch.cuda.tasks.colorize import colorize as recipe

        gray, marked = scene()
        mask = (marked != gray).any(0) if kind == "mask" else None
        if kind == "layer":
            marked = torch.cat([marked, 200 * (marked != gray).any(0)[None].to(torch.uint8)])
        if kind == "float":
            gray, marked = gray / 255, marked / 255
        if kind == "double":
            gray, marked = gray.double(), marked.double()
        expected = bilateral.torch.colorize(gray, marked, mask, **options)
        kernels_filter(monkeypatch)
        cpu_domain_transform(monkeypatch, recipe)
        on = [None if t is None else t.to(DEVICE) for t in (gray, marked, mask)]
        found = bilateral.torch.colorize(*on, **options).cpu()  # type: ignore[arg-type]
        assert found.dtype == expected.dtype
        white = 1.0 if kind == "float" else 255.0
        error = (found.double() - expected.double()).square().mean().sqrt()
        assert error <= 1e-3 * white

    @pytest.mark.skipif(COMPILED, reason="calls on a GPU are recorded")
    def test_recorded_calls_are_the_plain_ones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from bilateral.torch.cuda import recorded, recording_cache
        from bilateral.torch.cuda.tasks.colorize import colorize as recipe
        from support.eager_graphs import use_eager_graphs

        kernels_filter(monkeypatch)
        cpu_domain_transform(monkeypatch, recipe)
        gray, marked = scene()
        calls = [(gray, marked), (gray.flip(2), marked.flip(2))]
        plain = [bilateral.torch.colorize(*call) for call in calls]
        use_eager_graphs(monkeypatch)
        recording_cache.forget()
        for _ in range(2):
            for call, expected in zip(calls, plain, strict=True):
                found = bilateral.torch.colorize(*call)
                assert (found.double() - expected.double()).abs().max() <= 1
        assert set(recorded.recordings()) == {"_read", "_fill", "_filtered"}
        assert not recorded.failures
        recording_cache.forget()
