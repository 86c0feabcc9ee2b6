# ruff: noqa: E402
"""Solves, recordings and memory on a real GPU."""

from contextlib import contextmanager
from itertools import product

import pytest

torch = pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

import bilateral.torch
from bilateral.torch import fast_path, inputs
from bilateral.torch.cuda import device_memory, recording_cache

pytestmark = pytest.mark.interpreter


@contextmanager
def little_memory(more):
    """Limit the memory to so many bytes beyond those in use."""
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + more
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


class TestOnAGpu:
    """Behaviour that Triton's interpreter cannot show."""

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
            recording_cache.forget()
            plain.append(bilateral.torch.solve(*call))
        for _ in range(3):  # all by the same recordings
            for call, expected in zip(calls, plain, strict=True):
                assert torch.equal(bilateral.torch.solve(*call), expected)
        (recordings,) = recording_cache.recording_sets()
        assert set(recordings.by_preconditioner) == {"pyramid", "multigrid"}

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
            recording_cache.forget()
            expected = bilateral.torch.solve(reference, target, weights, **options)
            for _ in range(2):
                found = bilateral.torch.solve(reference, target, weights, **options)
                assert torch.equal(found, expected), (found - expected).abs().max()
            (recordings,) = recording_cache.recording_sets()
            assert recordings.by_preconditioner

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
                patch.setattr(inputs, "batch", None)  # which the usual way would call
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
                    recording_cache.forget()
                    plain.append(gradients(*solved(target, weights, robust)))
                for order in ((0, 1), (1, 0), (1, 0)):  # of backwards, after both forwards
                    made = [solved(target, weights, robust) for target in targets]
                    for i in order:
                        for one, other in zip(gradients(*made[i]), plain[i], strict=True):
                            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)

    def test_training_follows_inference_mode(self):
        torch.manual_seed(7)
        reference, target = torch.rand(1, 1, 40, 50).cuda(), torch.rand(1, 1, 40, 50).cuda()
        recording_cache.forget()
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
        recording_cache.forget()
        plain = bilateral.torch.solve(reference, target)
        for _ in range(3):
            assert torch.equal(bilateral.torch.solve(reference, target), plain)
        (recordings,) = recording_cache.recording_sets()
        assert recordings.by_preconditioner

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
        recording_cache.forget()
        reference, target = torch.rand(1, 3, 64, 64).cuda(), torch.rand(1, 1, 64, 64).cuda()
        expected = bilateral.torch.solve(reference, target)
        large = torch.rand(1, 1, 2048, 2048).cuda()
        with little_memory(2**24):
            for _ in range(3):
                with pytest.raises(torch.OutOfMemoryError):
                    bilateral.torch.solve(large, large)
            assert torch.equal(bilateral.torch.solve(reference, target), expected)

    def test_recordings_give_way(self):
        device_memory.free_memory(torch.device("cuda", 0))
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
            recording_cache.forget()
            for sigma in (7, 9, 10):
                for _ in range(2):
                    bilateral.torch.solve(large, large, sigma_xy=sigma)
            cached = recording_cache.recording_sets()
            assert sum(bool(recordings.by_preconditioner) for recordings in cached) == 3
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


def task_calls():
    """Tasks with small scenes: an edge along a diagonal."""
    draw = torch.Generator().manual_seed(0)
    y, x = torch.meshgrid(torch.arange(96), torch.arange(128), indexing="ij")
    far = x + y // 3 > 75
    noise = torch.rand(3, 96, 128, generator=draw) * 8
    photo = (torch.where(far, 190, 60) + noise).to(torch.uint8)
    depth = torch.where(far, 3.0, 1.0) + 0.002 * y
    noisy = depth + 0.004 * torch.randn(depth.shape, generator=draw)
    holes = noisy.clone()
    holes[30:50, 60:80] = torch.nan
    low = torch.nn.functional.avg_pool2d(noisy[None], 8)
    gray = photo[:1]
    marked = gray.repeat(3, 1, 1)
    marked[:, 10:16, 10:40] = torch.tensor([170, 40, 40], dtype=torch.uint8)[:, None, None]
    marked[:, 60:66, 90:120] = torch.tensor([120, 190, 250], dtype=torch.uint8)[:, None, None]
    scores = torch.stack([far.float(), 1 - far.float()])[None]
    scores = 6 * torch.nn.functional.avg_pool2d(scores, 8)
    call = bilateral.torch
    return [
        (call.superres_depth, (low, photo)),
        (call.refine_depth, (holes, photo)),
        (call.colorize, (gray, marked)),
        (call.refine_segmentation, (scores, photo[None])),
        (lambda *maps: call.polish(*maps, scale=0.1), (noisy[None], photo)),
    ]


class TestRecordedTasks:
    """Tasks on a real GPU: later calls replay the first one's functions."""

    @pytest.mark.parametrize("number", range(5))
    def test_replays_are_the_cpus(self, number):
        from bilateral.torch.cuda import recorded

        recorded.forget()
        recorded.failures.clear()
        function, maps = task_calls()[number]
        expected = function(*maps).double()
        on = [value.cuda() for value in maps]
        found = [function(*on) for _ in range(4)]
        assert torch.equal(found[2], found[3])
        scale = expected.max() - expected.min()
        for each in (found[0], found[3]):
            error = (each.cpu().double() - expected).square().mean().sqrt()
            assert error <= 1e-3 * scale
        assert recorded.recordings()
        assert not recorded.failures
