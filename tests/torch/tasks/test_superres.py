"""`superres_depth` of tensors: PyTorch's layout, the values of the CPU, and the kernels."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor

import bilateral.torch
from bilateral.tasks import superres_depth
from bilateral.tasks.superres import policy
from support.kernels import COMPILED, DEVICE, cpu_domain_transform, kernels_filter


def scene(
    low: tuple[int, int] = (9, 10), factor: int = 2, noise: float = 0.02, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """A low-resolution map (1, h, w) with an edge, and its photograph (3, H, W)."""
    rng = np.random.default_rng(seed)
    height, width = low[0] * factor, low[1] * factor
    y, x = np.mgrid[:height, :width]
    far = x + y // 3 > 0.55 * width
    depth = np.where(far, 3.0, 1.0) + 0.01 * y
    photo = np.where(far, 190, 60)[..., None] + rng.normal(0, 2, (height, width, 3))
    small = depth.reshape(low[0], factor, low[1], factor).mean((1, 3))
    small += rng.normal(0, noise, low)
    image = np.clip(photo, 0, 255).astype(np.uint8)
    return torch.from_numpy(small[None]), torch.from_numpy(image).movedim(-1, 0)


def array(image: Tensor) -> Any:
    return image.movedim(0, -1).numpy()


@pytest.mark.parametrize("preset", ["best", "fast", "paper"])
def test_each_map_is_enlarged_as_an_array(preset: str) -> None:
    scenes = [scene(seed=seed) for seed in range(2)]
    low, photos = torch.stack([s[0] for s in scenes]), torch.stack([s[1] for s in scenes])
    found = bilateral.torch.superres_depth(low, photos, preset=preset)
    assert found.shape == (2, 1, 18, 20)
    for i in range(2):
        expected = superres_depth(low[i, 0].numpy(), array(photos[i]), preset=preset)
        np.testing.assert_array_equal(found[i, 0].numpy(), expected)
        alone = bilateral.torch.superres_depth(low[i, 0], photos[i], preset=preset)
        assert torch.equal(alone, found[i, 0])
    shared = bilateral.torch.superres_depth(low[:, 0], photos[0], preset=preset)
    assert shared.shape == (2, 18, 20)
    assert torch.equal(shared[0], found[0, 0])


def test_options_and_dtypes() -> None:
    low, photo = scene()
    low[0, 2, 3] = 0
    trust = torch.ones_like(low)
    trust[0, 5, 5] = 0.1
    options: dict[str, Any] = {"invalid": 0, "keep_holes": True, "factor": 2}
    found = bilateral.torch.superres_depth(low.half(), photo, confidence=trust, **options)
    assert found.dtype == torch.float16
    expected = superres_depth(
        low[0].half().numpy(), array(photo), confidence=trust[0].numpy(), **options
    )
    np.testing.assert_array_equal(found[0].numpy(), expected)
    assert (found == 0).sum() == 4
    given = scene()[0].bfloat16().requires_grad_()
    wide = bilateral.torch.superres_depth(given, photo, dtype=torch.float64)
    assert wide.dtype == torch.float64
    assert not wide.requires_grad
    counts = bilateral.torch.superres_depth((100 * low).int(), photo, invalid=0)
    assert counts.dtype == torch.int32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth_lowres": np.zeros((9, 10))}, "depth_lowres: expected a tensor"),
        ({"depth_lowres": torch.zeros(1, 2, 9, 10)}, "depth_lowres: expected one number per pixel"),
        ({"depth_lowres": torch.full((1, 9, 10), torch.nan)}, "depth_lowres: expected at least"),
        ({"reference": torch.zeros(4, 18, 20)}, "reference: expected 1 or 3 channels"),
        ({"reference": torch.zeros(2, 3, 18, 20)}, "reference: expected one photograph"),
        ({"reference": torch.zeros(3, 4, 4)}, "reference: expected"),
        ({"reference": torch.full((3, 18, 20), 7.0)}, "reference: expected floating-point"),
        ({"factor": 3}, "factor: expected"),
        ({"preset": "good"}, "preset"),
        ({"confidence": -torch.ones(9, 10)}, "confidence: expected finite numbers"),
        ({"confidence": torch.ones(9, 9)}, "confidence: expected 9 x 10 pixels"),
        ({"dtype": np.float32}, "dtype: expected a real dtype"),
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
    low, photo = scene()
    arguments = {"depth_lowres": low, "reference": photo, **change}
    if kernels:
        arguments = {
            name: value.to(DEVICE) if isinstance(value, Tensor) else value
            for name, value in arguments.items()
        }
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.superres_depth(**arguments)


@pytest.mark.parametrize("known_part", [0.0, 0.02, 0.6, 1.0])
@pytest.mark.parametrize("size", [(2, 2), (5, 9), (24, 31)])
def test_the_noise_is_that_of_arrays(size: tuple[int, int], known_part: float) -> None:
    from bilateral.tasks.superres.noise import MapNoise as OfArrays
    from bilateral.torch.cuda.tasks.superres import noise

    rng = np.random.default_rng(size[0])
    y, x = np.mgrid[: size[0], : size[1]]
    values = np.where(x > 0.6 * size[1], 3.0, 1.0) + 0.05 * y + rng.normal(0, 0.02, size)
    known = rng.uniform(size=size) < known_part
    known[0, 0] = True
    numbers = noise.measure(torch.from_numpy(values), torch.from_numpy(known))
    assert numbers.shape == (noise.NUMBERS,)
    found, expected = noise.MapNoise.of(numbers.tolist()), OfArrays.of(values, known)
    np.testing.assert_allclose(found[:3], expected[:3], rtol=1e-9, atol=1e-15)
    at = np.linspace(values.min() - 1, values.max() + 1, 50)
    table = torch.tensor(found.table, dtype=torch.float64)
    levels = noise.levels_at(table, torch.from_numpy(at)).numpy()
    np.testing.assert_allclose(levels, expected.levels(at), rtol=1e-9)


@pytest.mark.interpreter
class TestKernels:
    """The recipe with the kernels, in Triton's interpreter where there is no GPU."""

    @pytest.fixture(autouse=True)
    def _fast(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Few steps on the graph of pixels, on both devices."""
        from bilateral.torch.cuda.tasks.superres import fit

        monkeypatch.setattr(policy, "COARSE_PASS", (1, 2))
        monkeypatch.setattr(policy, "FINE_PASS", (1, 2))
        cpu_domain_transform(monkeypatch, fit)

    def check(
        self, monkeypatch: pytest.MonkeyPatch, low: Tensor, photo: Tensor, **options: Any
    ) -> Tensor:
        """Compare with the CPU."""
        expected = bilateral.torch.superres_depth(low, photo, **options)
        kernels_filter(monkeypatch)
        there = {k: v.to(DEVICE) if isinstance(v, Tensor) else v for k, v in options.items()}
        found = bilateral.torch.superres_depth(low.to(DEVICE), photo.to(DEVICE), **there)
        assert found.dtype == expected.dtype
        found = found.cpu().double()
        known = low[low.isfinite()].double()
        error = (found - expected.double()).square().mean().sqrt()
        assert error <= 1e-3 * (known.max() - known.min())
        return found

    @pytest.mark.smoke
    def test_the_papers_pipeline(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.check(monkeypatch, *scene(), preset="paper")

    @pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
    def test_the_best_preset(self, noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
        low, photo = scene(noise=noise)
        self.check(monkeypatch, low.float(), photo)

    def test_coarse_passes_and_holes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        low, photo = scene((8, 9), 4)
        low[0, 3, 3:5] = torch.nan
        trust = torch.ones_like(low)
        trust[0, 6] = 0.3
        self.check(monkeypatch, low, photo, confidence=trust, keep_holes=False)

    def test_a_photograph_of_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        low, _ = scene(noise=0.1)
        photo = torch.rand(3, 18, 20, generator=torch.Generator().manual_seed(0))
        self.check(monkeypatch, low.float(), photo)

    def test_kept_holes_of_integers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        low, photo = scene((4, 5), 3)
        low = (1000 * low).to(torch.int32)
        low[0, 1, 1] = 0
        options = {"invalid": 0, "keep_holes": True, "preset": "fast"}
        found = self.check(monkeypatch, low, photo[:, :11], factor=3, **options)
        assert (found == 0).sum() == 9

    @pytest.mark.skipif(COMPILED, reason="calls on a GPU are recorded")
    def test_recorded_calls_are_the_plain_ones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from bilateral.torch.cuda import recorded, recording_cache
        from support.eager_graphs import use_eager_graphs

        kernels_filter(monkeypatch)
        scenes = [scene((8, 9), 4, noise=noise, seed=seed) for seed, noise in enumerate((0, 0.1))]
        plain = [bilateral.torch.superres_depth(*each) for each in scenes]
        use_eager_graphs(monkeypatch)
        recording_cache.forget()
        for _ in range(2):
            for each, expected in zip(scenes, plain, strict=True):
                found = bilateral.torch.superres_depth(*each)
                error = (found - expected).square().mean().sqrt()
                assert error <= 1e-3 * (expected.max() - expected.min())
        assert {"_read", "start_data", "round_data", "fit_on_pixels"} <= set(recorded.recordings())
        assert not recorded.failures
        kinds = [set(found.by_preconditioner) for found in recording_cache.recording_sets()]
        assert kinds
        assert all(kinds)
        recording_cache.forget()
