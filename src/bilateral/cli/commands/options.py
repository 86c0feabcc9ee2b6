"""The options that all commands on files have."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from bilateral.cli.commands.command import Task
from bilateral.cli.display.help import GroupedCommand

_MANY, _LOOK, _FILES = "Many files", "Looking at it", "Files"


@dataclass(frozen=True, kw_only=True)
class Shared:
    """As given on the command line."""

    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="PATH", rich_help_panel=_FILES,
            help="File to write, its suffix naming the format; a folder for many; - for stdout.",
        ),
    ]  # fmt: skip
    format: Annotated[
        str | None,
        typer.Option(
            metavar="SUFFIX", rich_help_panel=_FILES,
            help="Format in a folder or to stdout, such as png or tif, if not the input's.",
        ),
    ] = None  # fmt: skip
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_FILES,
            help="Of the result, such as uint16 or float32, if not the input's.",
        ),
    ] = None  # fmt: skip
    force: Annotated[
        bool, typer.Option("--force", "-f", rich_help_panel=_FILES, help="Replace existing files.")
    ] = False
    limit: Annotated[
        int,
        typer.Option(
            min=1, metavar="MB", rich_help_panel=_FILES,
            help="Most memory that one input may unpack to.",
        ),
    ] = 1000  # fmt: skip
    key: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_FILES, help="Which array of an NPZ file."),
    ] = None
    page: Annotated[
        int | None,
        typer.Option(min=0, rich_help_panel=_FILES, help="Which page of a TIFF file, from 0."),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, rich_help_panel=_MANY,
            help="Files at a time, by default one per core; the cores are shared among them.",
        ),
    ] = None  # fmt: skip
    skip_existing: Annotated[
        bool,
        typer.Option(
            "--skip-existing", rich_help_panel=_MANY,
            help="Leave out what has a result already: to go on where a run was stopped.",
        ),
    ] = False  # fmt: skip
    json: Annotated[
        bool,
        typer.Option(
            "--json", rich_help_panel=_MANY, help="One line of JSON per file, on stdout."
        ),
    ] = False  # fmt: skip
    preview: Annotated[
        bool,
        typer.Option(
            "--preview", rich_help_panel=_LOOK,
            help="Add a picture in colours, NAME.preview.png, beside each result.",
        ),
    ] = False  # fmt: skip
    range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH", rich_help_panel=_LOOK,
            help="What the colours span, the same for all files.",
        ),
    ] = None  # fmt: skip
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", rich_help_panel=_LOOK,
            help="Write an HTML page with all pictures side by side.",
        ),
    ] = None  # fmt: skip
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", rich_help_panel=_LOOK,
            help="What is right: adds errors to --report and --json.",
        ),
    ] = None  # fmt: skip
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only errors, even on a terminal.")
    ] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False


def command(
    app: typer.Typer, run: Callable[[Task, Shared], int]
) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    """Register a function that makes a `Task` as a command, with the shared options as well."""
    hints = get_type_hints(Shared, include_extras=True)
    common = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=Shared.__dict__.get(option.name, inspect.Parameter.empty),
            annotation=hints[option.name],
        )
        for option in fields(Shared)
    ]

    def register(function: Callable[..., Task]) -> Callable[..., Task]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())
        passed_on = [parameter for parameter in own if parameter.name != "shared"]

        def call(**given: Any) -> int:
            shared = Shared(**{option.name: given.pop(option.name) for option in fields(Shared)})
            return run(function(**given, shared=shared), shared)

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in passed_on] + common
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__doc__, call.__name__ = function.__doc__, function.__name__
        app.command(cls=GroupedCommand)(call)
        return function

    return register
