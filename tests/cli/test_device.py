"""`--device`: the commands on a CUDA device, and what they say where there is none.

Tests cannot have a GPU. In some, the CPU stands for one: tensors take the way of a device, through
`bilateral.torch`, and stay on the CPU.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("torch", reason="the device needs PyTorch")

import torch

import bilateral.torch
from bilateral import io
from bilateral.cli import device
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records

DEPTH = ("depth", "depth.png", "photo.png", "--invalid", 0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the CPU stand for a CUDA device; return the names of the calls with tensors."""
    made: list[str] = []

    def listed(name: str) -> Any:
        function = getattr(bilateral.torch, name)

        def call(*arguments: Any, **options: Any) -> Any:
            made.append(name)
            assert any(isinstance(value, torch.Tensor) for value in options.values())
            assert not any(isinstance(value, np.ndarray) for value in options.values())
            return function(*arguments, **options)

        call.__signature__ = device.inspect.signature(function)  # type: ignore[attr-defined]
        return call

    monkeypatch.setattr(device, "_find_problem", lambda: "")
    monkeypatch.setattr(device, "_find_device", lambda: "cpu")
    maps = ("solve", "refine_depth", "complete_depth", "superres_depth")
    for name in (*maps, "refine_segmentation", "colorize", "defocus"):
        monkeypatch.setattr(bilateral.torch, name, listed(name))
    return made


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    device._find_problem.cache_clear()


@pytest.mark.usefixtures("no_gpu")
def test_no_gpu(here: Path, call: Main) -> None:
    fails(
        call(*DEPTH, "-o", "o.png", "--device", "cuda"),
        "--device cuda: PyTorch finds no CUDA device",
        "Leave --device out",
        code=2,
    )
    assert not (here / "o.png").exists()
    works(call(*DEPTH, "-o", "o.png", "--device", "auto"))
    works(call(*DEPTH, "-o", "plain.png"))
    assert (here / "o.png").read_bytes() == (here / "plain.png").read_bytes()


def test_no_torch(here: Path, call: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_spec", lambda _: None)
    device._find_problem.cache_clear()
    text = "needs PyTorch, which is not installed: pip install 'bilateral[torch]'"
    fails(call(*DEPTH, "-o", "o.png", "--device", "cuda"), text, code=2)
    works(call(*DEPTH, "-o", "o.png", "--device", "auto"))
    device._find_problem.cache_clear()


def test_no_triton(here: Path, call: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_spec", lambda name: None if name == "triton" else "found")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    device._find_problem.cache_clear()
    fails(call(*DEPTH, "-o", "o.png", "--device", "cuda"), "pip install triton", code=2)
    device._find_problem.cache_clear()


def test_a_wrong_device(here: Path, call: Main) -> None:
    fails(call(*DEPTH, "-o", "o.png", "--device", "tpu"), "--device", "cpu", "cuda", code=2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("stereo", "photo.png", "photo.png", "--max-disparity", 4), "this command"),
        (("cut", "photo.png", "photo.png"), "this command"),
        (("solve", "photo.png", "depth.png", "--sigma-t", 2), "--sigma-t"),
        (("solve", "photo.png", "depth.png", "--smoothness", "auto"), "--smoothness auto"),
        (("solve", "photo.png", "depth.png", "--method", "paper"), "--method"),
        (("solve", "photo.png", "depth.png", "--smooth", 4, 4), "--smooth"),
        (("depth", "depths", "photos", "--video"), "--video"),
        (("depth", "depth.mkv", "photo.mkv"), "a video"),
    ],
)
def test_what_only_the_cpu_computes(
    here: Path, call: Main, calls: list[str], arguments: tuple[Any, ...], text: str
) -> None:
    disk.folders(here, 1)
    (here / "depth.mkv").write_bytes(b"")
    (here / "photo.mkv").write_bytes(b"")
    output = "o" if "depths" in arguments else "o.mkv" if "depth.mkv" in arguments else "o.tif"
    outcome = call(*arguments, "-o", output, "--device", "cuda")
    fails(outcome, f"--device cuda: {text} computes on the CPU only", code=2)
    assert not calls


def test_auto_takes_the_cpu_where_it_must(here: Path, call: Main, calls: list[str]) -> None:
    arguments = ("solve", "photo.png", "depth.png", "--smooth", 4, 4)
    works(call(*arguments, "-o", "a.tif", "--device", "auto"))
    works(call(*arguments, "-o", "b.tif"))
    np.testing.assert_array_equal(io.read(here / "a.tif"), io.read(here / "b.tif"))
    assert not calls


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (DEPTH, "refine_depth"),
        (("depth", "depth.png", "photo.png", "--mask", "mask.png"), "refine_depth"),
        (("depth", "depth.png", "gray.png", "--preset", "sparse"), "refine_depth"),
        (("complete", "depth.png", "photo.png", "--confidence", "mask.png"), "complete_depth"),
        (("solve", "photo.png", "depth.png", "--invalid", 0), "solve"),
        (("solve", "gray.png", "depth.pfm", "--confidence", "mask.png"), "solve"),
        (("solve", "photo.png", "photo.png", "--sigma-xy", 6), "solve"),
        (("segment", "scores.npy", "photo.png"), "refine_segmentation"),
        (("segment", "foreground.npy", "gray.png"), "refine_segmentation"),
        (("superres", "small.png", "photo.png", "--invalid", 0), "superres_depth"),
        (("defocus", "photo.png", "depth.pfm", "--focus", 3, "--aperture", 2), "defocus"),
        (("defocus", "gray.png", "depth.pfm", "--focus", 3, "--aperture", 2), "defocus"),
        (("colorize", "gray.png", "marked.png"), "colorize"),
    ],
)
def test_the_device_computes_the_same(
    here: Path, call: Main, calls: list[str], arguments: tuple[Any, ...], name: str
) -> None:
    photo, depth = io.read(here / "photo.png"), io.read(here / "depth.png")
    io.write(here / "gray.png", photo[..., 0])
    io.write(here / "mask.png", (depth > 0).astype(np.uint8))
    io.write(here / "depth.pfm", np.maximum(depth, 1).astype(np.float32))
    io.write(here / "small.png", depth[::4, ::4])
    marked = np.repeat(photo[..., :1], 3, axis=2)
    marked[10:14, 5:30] = 200, 40, 40
    io.write(here / "marked.png", marked)
    scores = np.random.default_rng(0).normal(size=(*depth.shape, 3)).astype(np.float32)
    io.write(here / "scores.npy", scores)
    io.write(here / "foreground.npy", (scores[..., 0] > 0).astype(np.float32))
    suffix = "npy" if name == "refine_segmentation" else "tif"
    works(call(*arguments, "-o", f"there.{suffix}", "--device", "cuda"))
    assert calls == [name]
    works(call(*arguments, "-o", f"here.{suffix}"))
    found, expected = io.read(here / f"there.{suffix}"), io.read(here / f"here.{suffix}")
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    scale = max(float(np.ptp(expected.astype(float))), 1.0)
    tolerance = 1e-4 * scale + (1 if expected.dtype.kind == "u" else 0)
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=tolerance)
    assert calls == [name]


def test_many_files_and_failures(here: Path, call: Main, calls: list[str]) -> None:
    disk.folders(here, 3)
    first = sorted((here / "depths").iterdir())[0]
    first.write_bytes(b"no picture")
    code, out, _ = call(
        *("depth", "depths", "photos", "-o", "o", "--invalid", 0, "--json", "--device", "cuda")
    )
    assert code == 1
    assert sorted(record["status"] for record in records(out)) == ["done", "done", "failed"]
    assert calls == ["refine_depth"] * 2


def test_a_worker_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_find_problem", lambda: "PyTorch finds no CUDA device.")
    with pytest.raises(io.FileError, match="--device cuda: PyTorch finds no CUDA device"):
        device.Task("refine_depth", "cuda")(np.ones((4, 4)), np.ones((4, 4)))
