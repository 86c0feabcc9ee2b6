"""The command `studio`: it starts, prints its address, and ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("httpx", reason="asks the server")
pytest.importorskip("uvicorn", reason="the studio needs uvicorn")

import httpx

from support.command import Main, fails


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended(tmp_path: Path, end: signal.Signals) -> None:
    (tmp_path / "photo.png").write_bytes(b"content")
    command = [sys.executable, "-m", "bilateral", "studio", "photo.png", "--no-open"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    assert url.startswith("http://127.0.0.1:")
    with httpx.Client(follow_redirects=True) as client:
        assert "bilateral studio" in client.get(url).text
        assert client.get(url.partition("?")[0] + "photo").content == b"content"
    process.send_signal(end)
    assert process.wait(20) in (0, 130, 143)
    process.stdout.close()


def test_a_missing_photo_is_named(here: Path, call: Main) -> None:
    fails(call("studio", "nothing.png", "--no-open"), "nothing.png: cannot be read", code=2)


def test_a_missing_package_is_named(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("bilateral.studio.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    outcome = call("studio", "--no-open")
    fails(outcome, 'pip install "bilateral[studio]"', code=2)


def test_a_taken_port_is_named(here: Path, call: Main) -> None:
    from bilateral.studio.server import Server

    server = Server()
    try:
        fails(call("studio", "--no-open", "--port", server.port), "cannot be used", code=2)
    finally:
        server._socket.close()
