"""Files larger than memory: rows in, rows out, and the numbers of the solve in memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("typer")
pytest.importorskip("zarr")
import tifffile
import zarr

import bilateral
from bilateral.io import large
from support.command import Main, fails

Array = npt.NDArray[Any]
SOLVE = ("solve", "photo.tif", "target.tif", "--sigma-xy", "6.5", "--memory", "20kB")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array, Array]:
    """Work in a folder with a photograph, a target with holes and a confidence."""
    rng = np.random.default_rng(2)
    y, x = np.mgrid[:210, :330]
    tone = 120 + 80 * np.sin(x / 19) + 30 * np.cos(y / 13)
    photo = np.clip(tone[..., np.newaxis] + rng.normal(0, 9, (210, 330, 3)), 0, 255)
    target = (tone + rng.normal(0, 20, tone.shape)).astype(np.float32)
    target[rng.uniform(size=tone.shape) < 0.3] = np.nan
    confidence = rng.uniform(size=tone.shape).astype(np.float32)
    monkeypatch.chdir(tmp_path)
    tifffile.imwrite("photo.tif", photo.astype(np.uint8), tile=(64, 80), compression="zlib")
    tifffile.imwrite("target.tif", target, tile=(32, 32))
    np.save("confidence.npy", confidence)
    return photo.astype(np.uint8), target, confidence


def works(outcome: tuple[int, str, str]) -> None:
    """Check that a command succeeded; the memory here is always too little for the solve."""
    assert outcome[:2] == (0, ""), outcome


def read(path: str) -> Array:
    reader = large.open_rows(path)
    rows = reader.rows(0, reader.shape[0])
    reader.close()
    return rows


def same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("output", ["out.tif", "out.npy", "out.zarr"])
def test_a_streamed_solve_has_the_bits_of_a_solve_in_memory(
    scene: tuple[Array, Array, Array], call: Main, output: str
) -> None:
    works(call(*SOLVE, "-o", output, "--confidence", "confidence.npy"))
    assert same_bits(read(output), bilateral.solve(*scene, sigma_xy=6.5))
    left = sorted(path.name for path in Path().iterdir())
    assert left == sorted(["confidence.npy", "photo.tif", "target.tif", output])


@pytest.mark.parametrize("memory", ["1", "100kB", "1MB", "1GB"])
def test_memory_changes_no_bit(scene: tuple[Array, Array, Array], call: Main, memory: str) -> None:
    works(call(*SOLVE[:-1], memory, "-o", "out.tif"))
    assert same_bits(read("out.tif"), bilateral.solve(*scene[:2], sigma_xy=6.5))


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_arrays_are_read_and_their_version_is_kept(
    scene: tuple[Array, Array, Array], call: Main, version: int
) -> None:
    for name, array in (("photo.zarr", scene[0]), ("target.zarr", scene[1])):
        chunks = (50, 70, *array.shape[2:])
        stored = zarr.create_array(
            name, shape=array.shape, dtype=array.dtype, chunks=chunks, zarr_format=version
        )
        stored[:] = array
    works(call("solve", "photo.zarr", "target.zarr", "-o", "out.zarr"))
    assert same_bits(read("out.zarr"), bilateral.solve(*scene[:2]))
    assert zarr.open_array("out.zarr", mode="r").metadata.zarr_format == version


def test_integers_with_unknown_numbers_are_rounded_as_in_memory(
    scene: tuple[Array, Array, Array], call: Main
) -> None:
    raw = np.nan_to_num(scene[1], nan=0).clip(0, 255).astype(np.uint16)
    tifffile.imwrite("target.tif", raw, tile=(32, 32))
    works(call(*SOLVE, "-o", "large.tif", "--invalid", 0))
    works(call(*SOLVE[:-2], "-o", "small.tif", "--invalid", 0))
    assert read("large.tif").dtype == np.uint16
    assert same_bits(read("large.tif"), read("small.tif"))


def test_arrays_of_a_zarr_group(scene: tuple[Array, Array, Array], call: Main) -> None:
    group = zarr.open_group("scene.zarr", mode="w")
    group.create_array("photo", data=scene[0], chunks=(64, 64, 3))
    group.create_array("target", data=scene[1], chunks=(50, 70))
    arguments = ("--sigma-xy", "6.5", "--memory", "20kB", "-o", "scene.zarr/out")
    works(call("solve", "scene.zarr/photo", "scene.zarr/target", *arguments))
    assert same_bits(read("scene.zarr/out"), bilateral.solve(*scene[:2], sigma_xy=6.5))


def test_json_and_skip_existing(scene: tuple[Array, Array, Array], call: Main) -> None:
    code, out, _ = call(*SOLVE, "-o", "out.tif", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["output"] == "out.tif"
    assert record["shape"] == [210, 330]
    assert record["dtype"] == "float32"
    before = Path("out.tif").stat().st_mtime_ns
    works(call(*SOLVE, "-o", "out.tif", "--skip-existing"))
    assert Path("out.tif").stat().st_mtime_ns == before
    fails(call(*SOLVE, "-o", "out.tif"), "out.tif", "exists")
    works(call(*SOLVE, "-o", "out.tif", "--force"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "out.png"), "--output: expected a name that ends with one of"),
        (("-o", "out.tif", "--smoothness", "auto"), "--smoothness: expected a number"),
        (("-o", "out.tif", "--smooth", "4", "4"), "--smooth: expected no such option"),
        (("-o", "out.tif", "--preview"), "--preview: is not for files"),
        (("-o", "photo.tif", "--force"), "would replace the input"),
        (("-o", "out.tif", "--memory", "much"), "--memory: expected a size such as 2GB"),
        (("-o", "out.tif", "--confidence", "small.npy"), "expected the size of the photograph"),
    ],
)
def test_mistakes_are_found_before_the_work(
    scene: tuple[Array, Array, Array], call: Main, arguments: tuple[str, ...], message: str
) -> None:
    np.save("small.npy", np.ones((10, 10)))
    fails(call(*SOLVE, *arguments), message, code=2)
    assert not Path("out.tif").exists()


def test_a_wrong_value_in_a_later_strip_leaves_no_file(
    scene: tuple[Array, Array, Array], call: Main
) -> None:
    confidence = scene[2].copy()
    confidence[200, 7] = -1
    np.save("confidence.npy", confidence)
    code, _, err = call(*SOLVE, "-o", "out.tif", "--confidence", "confidence.npy")
    assert code == 1
    assert "confidence: expected finite numbers, 0 or above" in err
    assert not Path("out.tif").exists()
