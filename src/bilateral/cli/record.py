"""Outcome of one set of files."""

import dataclasses
import json
from typing import Literal

from bilateral.cli.report.metrics import Metrics


@dataclasses.dataclass
class Record:
    """Outcome of one set of files: one line of ``--json``."""

    input: str
    output: str | None = None
    inputs: dict[str, str] | None = None
    """Files by the names of the inputs, if ``--pair`` is given."""
    status: Literal["done", "skipped", "failed"] = "done"
    seconds: float = 0.0
    shape: list[int] | None = None
    dtype: str | None = None
    n_vertices: int | None = None
    """Size of the linear system, of files that are larger than memory."""
    metrics: Metrics | None = None
    """Errors before and after, with ``--truth``; in JSON their name is "figures"."""
    warnings: list[str] = dataclasses.field(default_factory=list)
    error: str | None = None
    names: list[str] = dataclasses.field(default_factory=list)
    """Key and paths of the files, by which messages about different files differ."""

    def to_json(self) -> str:
        """Return one line of JSON, without empty fields."""
        entries = {
            "figures" if name == "metrics" else name: value
            for name, value in dataclasses.asdict(self).items()
            if value not in (None, []) and name != "names"
        }
        return json.dumps(entries | {"seconds": round(self.seconds, 4)})
