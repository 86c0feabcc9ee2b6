"""Pair the files of several inputs: by name, by order, by the numbers in names, or by a list."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from bilateral.cli.errors import UsageError
from bilateral.cli.files import pair_list
from bilateral.cli.files.name_numbers import (
    natural_order,
    nearest,
    usual_step,
    varying_numbers,
)
from bilateral.cli.files.sources import Source
from bilateral.io.messages import printable

RULES = ("name", "sorted", "nearest")
"""Values of ``--pair``. Any other value names a list file."""


@dataclass(frozen=True)
class Pairing:
    """Files of all inputs by the keys of one input, the leading one."""

    sources: Mapping[str, Source]
    leading: str
    """Name of the input whose files are processed one by one."""
    summary: Sequence[str] = ()
    """Lines that say how good the pairs are, if the rule is a guess."""

    @property
    def many(self) -> bool:
        """Whether there are many sets of files."""
        return self.sources[self.leading].single is None

    @property
    def keys(self) -> list[str]:
        """Keys of all sets of files."""
        leading = self.sources[self.leading]
        return list(leading.many) if leading.single is None else [leading.single.stem]


def pair(sources: Mapping[str, Source], names: Sequence[str], lead: str, rule: str) -> Pairing:
    """Pair the files of inputs.

    Parameters
    ----------
    sources : dict
        Files by the name of the input.
    names : sequence of str
        Names of the two inputs that lead, in the order of the command line.
    lead : str
        The one of them that names results, unless only the other one has many files.
    rule : str
        One of `RULES`, or the path of a list file.
    """
    if rule not in RULES:
        listed = pair_list.pair(
            rule, *(sources[name] for name in names), lead_first=names[0] == lead
        )
        sources = {**sources, **dict(zip(names, listed, strict=True))}
    leading = next((n for n in (lead, *names) if sources[n].single is None), lead)
    if sources[leading].single is not None:
        return Pairing(sources, leading)
    paired, summary = {leading: sources[leading]}, []
    for name, source in sources.items():
        if name == leading or source.single is not None:
            paired[name] = source
        elif rule == "sorted":
            paired[name] = _pair_sorted(sources[leading], source)
        elif rule == "nearest":
            paired[name], text = _pair_nearest(sources[leading], source)
            summary.append(text)
        else:
            _refuse_foreign_names(sources[leading], source)
            paired[name] = source
    return Pairing(paired, leading, summary)


def _refuse_foreign_names(leading: Source, source: Source) -> None:
    if leading.many.keys().isdisjoint(source.many):
        first, other = (printable(next(iter(s.many.values()))[0].name) for s in (leading, source))
        raise UsageError(
            f"no file in {printable(source.argument)} has the name of a file in "
            f"{printable(leading.argument)}: their names are such as {other} and {first}. "
            f"--pair sorted pairs them by order, --pair nearest by the numbers in their names."
        )


def _pair_sorted(leading: Source, source: Source) -> Source:
    keys, others = (sorted(s.many, key=natural_order) for s in (leading, source))
    if len(keys) != len(others):
        raise UsageError(
            f"--pair sorted: expected as many files in {printable(source.argument)} as in "
            f"{printable(leading.argument)}, got {len(others)} and {len(keys)}. --pair nearest "
            f"pairs them by the numbers in their names."
        )
    many = {key: source.many[other] for key, other in zip(keys, others, strict=True)}
    return dataclasses.replace(source, many=many)


def _pair_nearest(leading: Source, source: Source) -> tuple[Source, str]:
    """Pair by numbers, up to the usual step between files; also return a summary."""
    numbers, others = _numbers(leading), _numbers(source)
    files: dict[Decimal, list[Path]] = {}
    for key, number in others.items():
        files.setdefault(number, []).extend(source.many[key])
    steps = [step for step in map(usual_step, (numbers.values(), files)) if step is not None]
    limit = min(steps, default=Decimal("Infinity"))
    ordered = sorted(files)
    many: dict[str, list[Path]] = {}
    reasons: dict[str, str] = {}
    largest = Decimal(0)
    for key, number in numbers.items():
        candidate = nearest(number, ordered)
        distance = abs(candidate - number)
        if distance <= limit:
            many[key] = files[candidate]
            largest = max(largest, distance)
        else:
            reasons[key] = (
                f"no file near {printable(key)} in {printable(source.argument)}: the nearest "
                f"number is {float(distance):g} away, the usual step between files is "
                f"{float(limit):g}."
            )
    summary = (
        f"--pair nearest: {len(many)} of {len(numbers)} files have a partner in "
        f"{printable(source.argument)}, at most {float(largest):g} away."
    )
    return dataclasses.replace(source, many=many, reasons=reasons), summary


def _numbers(source: Source) -> Mapping[str, Decimal]:
    keys = list(source.many)
    numbers = varying_numbers(keys)
    if numbers is None:
        examples = " and ".join(printable(key) for key in keys[:2])
        raise UsageError(
            f"--pair nearest: expected one number that differs between the names in "
            f"{printable(source.argument)}, got {examples}. Use --pair sorted or a list file."
        )
    return numbers
