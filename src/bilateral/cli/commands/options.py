"""Declare the options that all commands on files have, and register commands with them."""

import glob
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from bilateral.cli.command import Command
from bilateral.cli.commands.grouped_help import FILES, MANY_FILES, VIEWING, GroupedCommand, option
from bilateral.cli.device import Device
from bilateral.cli.files.inputs import Reader
from bilateral.cli.files.pairing import RULES


def _complete_pair(incomplete: str) -> list[str]:
    """Return the rules and the files that a shell may complete the value of ``--pair`` to."""
    rules = [rule for rule in RULES if rule.startswith(incomplete)]
    return rules + sorted(glob.glob(glob.escape(incomplete) + "*"))


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options of all commands on files, as given on the command line."""

    output: Annotated[
        str,
        option(
            FILES, "Output file (its suffix sets the format), folder, or - for stdout.",
            "--output", "-o", metavar="PATH",
        ),
    ]  # fmt: skip
    format: Annotated[
        str | None,
        option(
            FILES, "Format in a folder or on stdout, such as png. Default: the input's.",
            metavar="SUFFIX",
        ),
    ] = None  # fmt: skip
    dtype: Annotated[
        str | None,
        option(
            FILES, "Type of the result's numbers, such as uint16. Default: the input's.",
            metavar="NAME",
        ),
    ] = None  # fmt: skip
    force: Annotated[bool, option(FILES, "Replace existing files.", "--force", "-f")] = False
    limit: Annotated[
        int, option(FILES, "Memory that one input may take when unpacked.", min=1, metavar="MB")
    ] = 1000
    key: Annotated[
        str | None, option(FILES, "Name of the array in an NPZ file.", metavar="NAME")
    ] = None
    page: Annotated[int | None, option(FILES, "Page of a TIFF file, from 0.", min=0)] = None
    device: Annotated[
        Device,
        option(
            None, "Where to compute: cuda needs PyTorch and a GPU, auto uses a GPU if there is one."
        ),
    ] = "cpu"  # fmt: skip
    jobs: Annotated[
        int | None,
        option(
            MANY_FILES, "Files to process at a time. Default: one per core.", "--jobs", "-j", min=1
        ),
    ] = None
    skip_existing: Annotated[
        bool,
        option(
            MANY_FILES, "Skip files that have a result, to continue a stopped run.",
            "--skip-existing",
        ),
    ] = False  # fmt: skip
    pair: Annotated[
        str,
        option(
            MANY_FILES,
            "Pair files by name, sorted (by order), nearest (by numbers in names), or a list file.",
            metavar="RULE|FILE", autocompletion=_complete_pair,
        ),
    ] = "name"  # fmt: skip
    shard: Annotated[
        str | None,
        option(
            MANY_FILES, "Process only this part of the files, from 1 to N, as in arrays of jobs.",
            metavar="I/N",
        ),
    ] = None  # fmt: skip
    manifest: Annotated[
        str | None,
        option(
            MANY_FILES,
            "File of JSON lines to write, one per file. If it exists, the run continues.",
            metavar="FILE",
        ),
    ] = None
    workers: Annotated[
        int | None,
        option(MANY_FILES, "Start a Dask cluster of N processes on this machine.", min=1,
               metavar="N"),
    ] = None  # fmt: skip
    scheduler: Annotated[
        str | None,
        option(
            MANY_FILES, "Address or file of a running Dask scheduler, to use its workers.",
            metavar="ADDRESS",
        ),
    ] = None  # fmt: skip
    json: Annotated[
        bool, option(MANY_FILES, "Print one line of JSON per file to stdout.", "--json")
    ] = False
    preview: Annotated[
        bool,
        option(VIEWING, "Also write each result in colours, as NAME.preview.png.", "--preview"),
    ] = False
    range: Annotated[
        tuple[float, float] | None,
        option(VIEWING, "Values at both ends of the colours, for all files.", metavar="LOW HIGH"),
    ] = None
    report: Annotated[
        str | None,
        option(
            VIEWING, "HTML page to write, with inputs and results side by side.", metavar="FILE"
        ),
    ] = None
    truth: Annotated[
        str | None,
        option(VIEWING, "True result: adds errors to --report and --json.", metavar="PATH"),
    ] = None
    quiet: Annotated[bool, option(None, "Print only errors and warnings.", "--quiet", "-q")] = False
    verbose: Annotated[
        bool, option(None, "Print each error and warning on its own line.", "--verbose", "-v")
    ] = False
    debug: Annotated[bool, option(None, "Print the traceback of errors.", "--debug")] = False

    @property
    def clustered(self) -> bool:
        """Whether a Dask cluster processes the files."""
        return self.workers is not None or self.scheduler is not None

    def reader(self) -> Reader:
        """Return a reader with the limit, the key and the page of these options."""
        return Reader(self.limit * 1_000_000, self.key, self.page)


def register(
    app: typer.Typer, run: Callable[[Command, CommonOptions], int]
) -> Callable[[Callable[..., Command]], Callable[..., Command]]:
    """Return a decorator that adds a function to `app` as a command with the common options.

    Parameters
    ----------
    app : typer.Typer
    run : function
        Runs the `Command` that the function returns; returns the exit code.
    """
    hints = get_type_hints(CommonOptions, include_extras=True)
    common_parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=CommonOptions.__dict__.get(field.name, inspect.Parameter.empty),
            annotation=hints[field.name],
        )
        for field in fields(CommonOptions)
    ]

    def decorate(function: Callable[..., Command]) -> Callable[..., Command]:
        signature = inspect.signature(function, eval_str=True)
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in signature.parameters.values()
            if parameter.name != "common"
        ] + common_parameters

        def call(**arguments: Any) -> int:
            common = CommonOptions(
                **{field.name: arguments.pop(field.name) for field in fields(CommonOptions)}
            )
            return run(function(**arguments, common=common), common)

        # Typer reads the parameters of a command from its signature and annotations.
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__doc__, call.__name__ = function.__doc__, function.__name__
        app.command(cls=GroupedCommand)(call)
        return function

    return decorate
