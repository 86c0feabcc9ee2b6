"""The command `studio`: start the local web page."""

from __future__ import annotations

from pathlib import Path

from bilateral.cli.errors import UsageError
from bilateral.io.messages import os_reason, printable


def start(photo: Path | None, port: int, open_page: bool) -> int:
    """Serve the studio until Ctrl-C; return the exit code."""
    try:
        from bilateral.studio.memory import limit_arenas
        from bilateral.studio.server import PortError, Server, open_browser
    except ModuleNotFoundError as error:
        if (error.name or "bilateral").partition(".")[0] == "bilateral":
            raise
        raise UsageError(
            f'the studio needs {error.name}: pip install "bilateral[studio]"'
        ) from None
    file = None if photo is None else (photo.name, _content(photo))
    try:
        server = Server(port, file)
    except PortError as error:
        raise UsageError(str(error)) from None

    def ready() -> None:
        print(f"The studio is open at {server.url}\nCtrl-C ends it.", flush=True)
        if open_page:
            open_browser(server.url)

    limit_arenas()
    server.run(ready)
    return 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be read: {os_reason(error)}.") from None
