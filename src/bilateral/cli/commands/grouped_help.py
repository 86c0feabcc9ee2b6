"""List the options of a command under headings in ``--help``, as plain text.

Typer's boxes need rich, whose import takes longer than everything else at the start.
"""

from typing import Any

import typer
from typer.core import TyperCommand

FILES, MANY_FILES, VIEWING = "Files", "Many files", "Previews and reports"
SOLVER, UNITS = "Solver", "Units"


def option(heading: str | None, text: str, *names: str, **settings: Any) -> Any:
    """Declare an option with its heading and help text; other settings are those of Typer."""
    return typer.Option(*names, help=text, rich_help_panel=heading, **settings)


class GroupedCommand(TyperCommand):
    """A command whose options are listed under the headings of their ``rich_help_panel``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by heading."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if parameter.param_type_name == "argument" else "Options"
                heading = getattr(parameter, "rich_help_panel", None) or default
                groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)
