"""What to take from a file, where it offers a choice."""

from dataclasses import dataclass

from bilateral.io.limits import LIMIT


@dataclass(frozen=True)
class Options:
    """See `bilateral.io.read`."""

    limit: int = LIMIT
    key: str | None = None
    page: int | None = None
    labels: bool = False
