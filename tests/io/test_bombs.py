"""Small files that unpack to much memory are refused before the memory is allocated."""

from pathlib import Path

import pytest

pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("tifffile", reason="TIFF files need tifffile")

from bilateral import io
from bilateral.io.options import Options
from support import bombs
from support.peak_memory import peak_memory

BOMBS = bombs.bombs()


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_before_they_unpack(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BOMBS[name])
    assert len(BOMBS[name]) < 1_000_000
    _warm_up(name)
    with peak_memory() as peak, pytest.raises(io.FileError) as caught:
        io.read(tmp_path / name, limit=bombs.LIMIT)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / name}: ")
    assert any(text in message for text in ("--limit", "twice", "real numbers", "NumPy does not"))
    assert peak.growth < bombs.LIMIT


def _warm_up(name: str) -> None:
    """Import the codecs, so that only the file takes memory."""
    suffix = Path(name).suffix
    dtype = "float32" if suffix == ".pfm" else "uint8"
    io.decode(io.encode(bombs.files.noise(dtype, (4, 4)), f"x{suffix}"), Options())


def test_colours_of_a_palette_fit_a_larger_limit() -> None:
    for name in ("palette.tif", "palette.png"):
        array = io.decode(BOMBS[name], Options(limit=60_000_000))
        assert array.shape == (3000, 3000, 3)
        assert not array.any()
        labels = io.decode(BOMBS[name], Options(limit=60_000_000, labels=True))
        assert labels.shape == (3000, 3000)


def test_unpacking_takes_a_small_multiple_of_the_limit() -> None:
    with peak_memory() as peak:
        io.decode(BOMBS["palette.tif"], Options(limit=54_000_000))
    assert peak.growth < 3 * 54_000_000
