"""EXR files are decoded in another process: nothing is printed, lost or left behind."""

import os
import signal
import struct
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("OpenEXR", reason="EXR files need OpenEXR")

from bilateral import io
from bilateral.io import exr_process
from bilateral.io.options import Options
from support import files, scripts

SMALL = io.encode(files.noise("float32", (6, 5)), "x.exr")


def test_other_threads_keep_their_output(capfd: pytest.CaptureFixture[str]) -> None:
    large = io.encode(files.noise("float32", (300, 300)), "x.exr")
    damaged = large[:-60] + bytes(60)

    def decode() -> None:
        for _ in range(6):
            io.decode(large, Options())
            with suppress(io.FileError):
                io.decode(damaged, Options())

    thread = threading.Thread(target=decode)
    thread.start()
    count = 0
    while thread.is_alive():
        print("line")
        os.write(2, b"line\n")
        count += 1
    out, err = capfd.readouterr()
    assert (out.count("line\n"), err.count("line\n")) == (count, count)
    assert len(out) == len(err) == 5 * count


def test_a_decoder_that_dies_is_replaced() -> None:
    expected = files.bits(io.decode(SMALL, Options()))
    for worker in exr_process._idle:
        os.kill(worker._process.pid, signal.SIGKILL)
    assert files.bits(io.decode(SMALL, Options())) == expected


def test_a_file_that_crashes_the_decoder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.exr").write_bytes(SMALL)
    program = tmp_path / "crash.py"
    program.write_text("import os; os.abort()")
    monkeypatch.setattr(exr_process, "_PROGRAM", program)
    monkeypatch.setattr(exr_process, "_idle", [])
    with pytest.raises(io.FileError, match=r"x\.exr: is damaged: OpenEXR crashes on it"):
        io.read(tmp_path / "x.exr")


@pytest.mark.stress
def test_forks_and_the_end_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "x.exr").write_bytes(SMALL)
    code = f"""
        import os
        from bilateral import io
        from bilateral.io import exr_process

        def read():
            return io.read({str(tmp_path / "x.exr")!r}).tobytes()

        expected = read()
        pid = exr_process._idle[0]._process.pid
        child = os.fork()
        same = read() == expected
        if not child:
            os._exit(0 if same and exr_process._idle[0]._process.pid != pid else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert same and exr_process._idle[0]._process.pid == pid
        print(pid)
    """
    pid = int(scripts.run(code, tmp_path))
    assert not Path(f"/proc/{pid}").exists()


def test_ctrl_c_leaves_the_decoder() -> None:
    io.decode(SMALL, Options())
    assert os.getpgid(exr_process._idle[-1]._process.pid) != os.getpgid(0)


def window(data: bytes, name: bytes, size: int) -> bytes:
    """Return an EXR file with another data window or display window."""
    start = data.index(name + b"\0box2i\0") + len(name) + 11
    return data[:start] + struct.pack("<4i", 0, 0, size - 1, size - 1) + data[start + 16 :]


def test_only_the_data_window_counts(tmp_path: Path) -> None:
    shown = io.decode(window(SMALL, b"displayWindow", 100_000), Options(), "x.exr")
    assert shown.shape == (6, 5)
    (tmp_path / "x.exr").write_bytes(window(SMALL, b"dataWindow", 100_000))
    with pytest.raises(io.FileError, match=r"x\.exr: 100000 x 100000 x 1 pixels .*--limit"):
        io.read(tmp_path / "x.exr")


def test_all_parts_count(tmp_path: Path) -> None:
    import OpenEXR

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    corners = np.zeros(2, np.int32), np.full(2, 599, np.int32)
    header["displayWindow"] = corners  # all parts must share it
    sizes = {"small": 4, "a": 600, "b": 600}
    parts = [
        OpenEXR.Part(dict(header), {"Y": np.zeros((size, size), np.float32)}, name=name)
        for name, size in sizes.items()
    ]
    OpenEXR.File(parts, num_threads=0).write(str(tmp_path / "x.exr"))
    assert io.read(tmp_path / "x.exr").shape == (4, 4)
    with pytest.raises(io.FileError, match=r"x\.exr: 600 x 600 x 1 pixels .*--limit"):
        io.read(tmp_path / "x.exr", limit=1_000_000)
    with pytest.raises(io.FileError, match=r"x\.exr: its 3 parts would take 3 MB.*--limit"):
        io.read(tmp_path / "x.exr", limit=2_000_000)
