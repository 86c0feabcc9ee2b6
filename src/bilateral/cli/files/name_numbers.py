"""Order file names by the numbers in them, such as time stamps, and find the nearest number."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import median

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)", re.ASCII)


def natural_order(name: str) -> list[tuple[str, Decimal]]:
    """Return a key that sorts names by their numbers: frame 9 comes before frame 10.

    Examples
    --------
    >>> sorted(["frame10", "frame9", "frame9.5"], key=natural_order)
    ['frame9', 'frame9.5', 'frame10']
    """
    parts = [*_NUMBER.split(name), "-1"]
    return [(text, Decimal(number)) for text, number in zip(parts[::2], parts[1::2], strict=True)]


def varying_numbers(names: Sequence[str]) -> Mapping[str, Decimal] | None:
    """Return the number that differs between names.

    Returns
    -------
    dict
        The number of each name, or None if not exactly one number differs. A single name has its
        last number.

    Examples
    --------
    >>> [int(number) for number in varying_numbers(["cam2_0007", "cam2_0013"]).values()]
    [7, 13]
    """
    rows = [[Decimal(text) for text in _NUMBER.findall(name)] for name in names]
    if not rows[0] or len({len(row) for row in rows}) > 1:
        return None
    varying = [column for column in zip(*rows, strict=True) if len(set(column)) > 1]
    if len(names) == 1:
        varying = [(rows[0][-1],)]
    return dict(zip(names, varying[0], strict=True)) if len(varying) == 1 else None


def usual_step(numbers: Iterable[Decimal]) -> Decimal | None:
    """Return the median difference of consecutive numbers, or None if there is only one."""
    ordered = sorted(set(numbers))
    steps = [high - low for low, high in pairwise(ordered)]
    return median(steps) if steps else None


def nearest(number: Decimal, ordered: Sequence[Decimal]) -> Decimal:
    """Return the nearest of some ordered numbers; of two equally near ones, the lower."""
    at = bisect_left(ordered, number)
    return min(ordered[max(at - 1, 0) : at + 1], key=lambda other: abs(other - number))
