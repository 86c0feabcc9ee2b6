"""Choose the part of the files that one of several runs processes, as in a SLURM array."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bilateral.cli.errors import UsageError
from bilateral.cli.files.name_numbers import natural_order

_TEXT = re.compile(r"\s*(\d+)\s*/\s*(\d+)\s*", re.ASCII)


class Shard(NamedTuple):
    """One of several parts, counted from 1."""

    number: int
    total: int

    def select(self, keys: Sequence[str]) -> list[str]:
        """Return the keys of this part.

        Every key is in exactly one part, whatever their order. Parts differ by at most one key.

        Examples
        --------
        >>> [Shard(i, 2).select(["c", "a", "b"]) for i in (1, 2)]
        [['a', 'c'], ['b']]
        """
        ordered = sorted(keys, key=lambda key: (natural_order(key), key))
        return ordered[self.number - 1 :: self.total]


def parse(text: str) -> Shard:
    """Read a part such as 3/16.

    Examples
    --------
    >>> parse("3/16")
    Shard(number=3, total=16)
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UsageError(f"--shard: expected a part such as 3/16, got {text!r}.")
    shard = Shard(*map(int, match.groups()))
    if not 1 <= shard.number <= shard.total:
        raise UsageError(
            f"--shard: expected a number from 1 to {shard.total} before the slash, got "
            f"{shard.number}. Let arrays of jobs count from 1, as sbatch --array=1-16 does."
        )
    return shard
