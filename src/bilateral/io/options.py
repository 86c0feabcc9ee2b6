"""Options of `bilateral.io.read`, as the decoder of each format receives them."""

from dataclasses import dataclass

from bilateral.io.limits import LIMIT


@dataclass(frozen=True)
class Options:
    """Parts of a file to read; `bilateral.io.read` describes each field."""

    limit: int = LIMIT
    key: str | None = None
    page: int | None = None
    labels: bool = False
