"""The command line: one command per task, and how errors and interruptions end it."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import bilateral
from bilateral import io
from bilateral.cli.commands import maps, pictures
from bilateral.cli.commands import options as shared
from bilateral.cli.commands.command import Task
from bilateral.cli.display.console import complain
from bilateral.cli.display.warning_log import listening
from bilateral.cli.files.pairing import UsageError
from bilateral.io import atomic
from bilateral.io.messages import one_line

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143

app = typer.Typer(
    name="bilateral",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 all is well, 1 files failed, 2 wrong usage, 130 interrupted by Ctrl-C, "
    "143 terminated.",
)


def _run(task: Task, options: shared.Shared) -> int:
    from bilateral.cli import batch

    return batch.run(task, options)


for _command in (
    maps.solve,
    maps.depth,
    maps.superres,
    maps.stereo,
    pictures.defocus,
    pictures.colorize,
    pictures.segment,
):
    shared.command(app, _run)(_command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"bilateral {bilateral.__version__}")
        raise typer.Exit


@app.callback()
def everything(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Smooth maps and pictures along the edges of a photograph.

    The Fast Bilateral Solver (Barron & Poole 2016) for files: depth maps, disparities, masks,
    colours. An input is a file, a folder, or a pattern in quotes; the files of two folders are
    matched by name. Each command has an example: bilateral depth --help
    """


@app.command()
def demo(
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where to write.")] = Path(
        "demo-output"
    ),
    scene: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Only this one; may be given repeatedly."),
    ] = [],  # noqa: B006
    list_: Annotated[bool, typer.Option("--list", help="Name the scenes and stop.")] = False,
) -> int:
    """Spoil a true depth map, repair it, and draw the outcome.

    Example: bilateral demo --scene sparse
    """
    from bilateral.cli.demo import demo

    return demo.main(output, scene, list_)


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> int:
    """Show versions, threads, the GPU and formats.

    Example: bilateral info
    """
    from bilateral.cli.commands import info

    return info.show(as_json)


def run(argv: list[str]) -> int:
    """Run the command line; return the exit code."""
    debug = "--debug" in argv
    try:
        previous = signal.signal(signal.SIGTERM, _terminate)
    except ValueError:  # not in the main thread
        previous = None
    try:
        with listening():
            code = app(argv, prog_name="bilateral", standalone_mode=False)
    except (UsageError, io.FileError) as error:
        complain(str(error))
        code = USAGE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as stop:
        code = stop.code
    except BrokenPipeError:  # who read stdout has gone
        _leave(FAILED)
    except Exception as error:
        if debug:
            raise
        code = _explain(error, argv)
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
    if code in (INTERRUPTED, TERMINATED):
        atomic.abandon()
        complain("interrupted." if code == INTERRUPTED else "terminated.")
        _leave(code)
    return code if isinstance(code, int) else 0


def _explain(error: Exception, argv: list[str]) -> int:
    """Wrong usage in one line, which points to the help; anything else is our fault."""
    if not hasattr(error, "format_message"):
        complain(f"unexpected {type(error).__name__}: {one_line(error)} (--debug shows where)")
        return FAILED
    text = error.format_message()
    if not argv:
        print(text, file=sys.stderr)
        return USAGE
    known = {command.callback.__name__ for command in app.registered_commands if command.callback}
    page = f"bilateral {argv[0]} --help" if argv[0] in known else "bilateral --help"
    hint = "quote patterns; " if "unexpected extra argument" in text else ""
    complain(f"{one_line(text)} ({hint}see {page})")
    return USAGE


def _terminate(*_: object) -> NoReturn:
    sys.exit(TERMINATED)


def _leave(code: int) -> NoReturn:
    """End now: threads that still compute are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
