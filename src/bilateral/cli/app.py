"""Define the command line: its commands, its messages and its exit codes."""

import errno
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import bilateral
from bilateral import io
from bilateral.cli.command import Command
from bilateral.cli.commands import alignment, completion, cut, maps, pictures
from bilateral.cli.commands.options import CommonOptions, register
from bilateral.cli.display.console import STDOUT_ERRORS, print_message, stdout_error
from bilateral.cli.display.warning_log import redirect_warnings
from bilateral.cli.errors import FAILED, INTERRUPTED, TERMINATED, USAGE, UsageError
from bilateral.io import atomic
from bilateral.io.messages import one_line, os_reason

app = typer.Typer(
    name="bilateral",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 success, 1 some files failed, 2 wrong usage, 130 interrupted by Ctrl-C, "
    "143 terminated.",
)


def _run_batch(command: Command, common: CommonOptions) -> int:
    from bilateral.cli import batch

    return batch.run(command, common)


for _function in (
    maps.solve,
    maps.depth,
    completion.complete,
    maps.superres,
    maps.stereo,
    alignment.align,
    pictures.defocus,
    pictures.colorize,
    cut.cut,
    pictures.segment,
):
    register(app, _run_batch)(_function)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"bilateral {bilateral.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Smooth maps and pictures along the edges of a photograph.

    The Fast Bilateral Solver (Barron & Poole, ECCV 2016) for files: depth maps, disparities,
    masks, colours. An input is a file, a folder, or a pattern in quotes. The files of two folders
    are matched by name, or as --pair says. The help of each command has an example: bilateral
    depth --help
    """


@app.command()
def demo(
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the pictures.")] = Path(
        "demo-output"
    ),
    scene: Annotated[
        list[str], typer.Option(metavar="NAME", help="Run only this scene. Repeat for more.")
    ] = [],  # noqa: B006
    list_: Annotated[bool, typer.Option("--list", help="List the scenes and exit.")] = False,
) -> int:
    """Spoil known maps and photos, repair them, draw the outcome.

    Example: bilateral demo --scene sparse
    """
    from bilateral.cli.demo import runner

    return runner.main(output, scene, list_)


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    warm_up: Annotated[
        bool, typer.Option("--warm-up", help="Compile the CUDA kernels, so that no call waits.")
    ] = False,
    capability: Annotated[
        int | None,
        typer.Option(
            min=50, help="With --warm-up: compute capability to compile for, as 90; needs no GPU."
        ),
    ] = None,
) -> int:
    """Show versions, threads, the GPU and the formats; or compile the CUDA kernels.

    Example: bilateral info --warm-up
    """
    from bilateral.cli.commands import info

    if warm_up or capability is not None:
        return info.warm_up(capability)
    return info.print_info(as_json)


@app.command()
def studio(
    photo: Annotated[
        Path | None, typer.Argument(metavar="PHOTO", help="Photograph to open.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine. Default: a free one.")
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> int:
    """Open a local web page to colorize, cut out, correct depth and refocus.

    Example: bilateral studio photo.jpg
    """
    from bilateral.cli.commands import studio

    return studio.start(photo, port, open_)


def run(argv: list[str]) -> int:
    """Run the command line; return the exit code."""
    debug = "--debug" in argv
    output_failure: OSError | None = None
    try:
        previous = signal.signal(signal.SIGTERM, _exit_terminated)
    except ValueError:  # not in the main thread
        previous = None
    try:
        with redirect_warnings():
            code = app(argv, prog_name="bilateral", standalone_mode=False)
    except (UsageError, io.FileError) as error:
        print_message(str(error))
        code = USAGE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as stop:
        code = stop.code
    except Exception as error:
        if isinstance(error, OSError) and error.errno in STDOUT_ERRORS and not error.filename:
            code, output_failure = FAILED, error
        elif debug:
            raise
        else:
            code = _print_error(error, argv)
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
    if code in (INTERRUPTED, TERMINATED):
        atomic.abandon()
        print_message("interrupted." if code == INTERRUPTED else "terminated.")
        _exit_now(code)
    output_failure = output_failure or stdout_error()
    if output_failure is not None:
        if output_failure.errno != errno.EPIPE:  # the reader of a pipe may stop when it likes
            print_message(f"stdout: cannot be written: {os_reason(output_failure)}.")
        _exit_now(FAILED)  # Python would try again to write, and print an error of its own
    return code if isinstance(code, int) else 0


def _print_error(error: Exception, argv: list[str]) -> int:
    """Print one line: for Typer's errors of usage with a hint to the help, else as unexpected."""
    if not hasattr(error, "format_message"):
        text = f"unexpected {type(error).__name__}: {one_line(error)} (--debug shows where)"
        print_message(text)
        return FAILED
    text = error.format_message()
    if not argv:
        print(text, file=sys.stderr)
        return USAGE
    from bilateral.cli.commands.other_names import command_hint, option_hint

    commands = typer.main.get_group(app).commands
    page = f"bilateral {argv[0]} --help" if argv[0] in commands else "bilateral --help"
    hint = "quote patterns; " if "unexpected extra argument" in text else ""
    if hasattr(error, "option_name") and "No such option" in text:
        unknown = str(error.option_name)
        options = {name: _option_names(command) for name, command in commands.items()}
        answer = option_hint(unknown, argv[0], options)
        text = f"no such option: {unknown}. {answer}".rstrip()
    elif "No such command" in text:
        text = f"no such command: {argv[0]}. {command_hint(argv[0], commands)}".rstrip()
    print_message(f"{one_line(text, 500)} ({hint}see {page})")
    return USAGE


def _option_names(command: Any) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name[0] == "-"]


def _exit_terminated(*_: object) -> NoReturn:
    sys.exit(TERMINATED)


def _exit_now(code: int) -> NoReturn:
    """End the program without waiting for threads that still compute."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)
