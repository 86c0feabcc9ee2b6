"""Check the exit code, stdout and stderr of a command."""

from collections.abc import Callable

Main = Callable[..., tuple[int, str, str]]


def works(outcome: tuple[int, str, str]) -> None:
    """Check that a command succeeded and printed nothing, since this is no terminal."""
    assert outcome == (0, "", "")


def fails(outcome: tuple[int, str, str], *texts: str, code: int = 1) -> str:
    """Check that a command printed one line on stderr that contains the texts; return it."""
    assert outcome[0] == code, outcome
    line = outcome[2].removesuffix("\n")
    assert "\n" not in line
    assert line.startswith("bilateral: ")
    for text in texts:
        assert text in line
    return line
