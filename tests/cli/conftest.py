"""Fixtures of the command line: a folder of small files, and a call in this process."""

from pathlib import Path

import pytest

from bilateral import io
from support import scenes_on_disk as disk
from support.command import Main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that holds a photograph, a noisy depth map and the true one."""
    scene = disk.scene()
    io.write(tmp_path / "photo.png", scene.photo)
    io.write(tmp_path / "depth.png", scene.depth)
    io.write(tmp_path / "truth.png", scene.truth)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Main:
    """Run the command in this process; return its exit code, stdout and stderr."""
    from bilateral.cli.main import main  # needs typer, which the test files ask for

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run
