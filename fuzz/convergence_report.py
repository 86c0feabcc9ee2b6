"""`python -m fuzz.convergence_report`: what `info.converged` promises, over many problems."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fuzz.draw import Draw

LEAST_BELOW_3 = 0.995
CHUNK = 100


def measured(seeds: Sequence[int]) -> list[tuple[int, str, bool, float]]:
    """Solve the problems of some seeds."""
    from fuzz.harnesses.convergence import measure
    from fuzz.worker import quiet_warnings

    quiet_warnings()
    draw = Draw()
    return [(seed, *measure(seed, draw)) for seed in seeds]


def main() -> int:
    """Return 1 if the promise does not hold."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.convergence_report")
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("BILATERAL_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    end = given.seed + given.problems
    chunks = [range(i, min(i + CHUNK, end)) for i in range(given.seed, end, CHUNK)]
    by_kind: dict[str, list[tuple[int, bool, float]]] = defaultdict(list)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for rows in pool.imap_unordered(measured, chunks):
            for seed, kind, converged, error in rows:
                by_kind[kind].append((seed, converged, error))
    every = [row for rows in by_kind.values() for row in rows]
    lines = [
        "| kind | problems | converged | below 3 tolerances | worst, in tolerances | its seed |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind, rows in [*sorted(by_kind.items()), ("all", every)]:
        errors = [(error, seed) for seed, converged, error in rows if converged]
        below = sum(error < 3 for error, _ in errors) / max(1, len(errors))
        worst, seed = max(errors, default=(0.0, 0))
        lines.append(
            f"| {kind} | {len(rows):,} | {len(errors):,} | {below:.2%} | {worst:.2f} | {seed} |"
        )
    print("\n".join(lines))
    if given.report:
        given.report.write_text("\n".join(lines) + "\n")
        given.report.with_suffix(".json").write_text(json.dumps(by_kind))
    return 0 if below >= LEAST_BELOW_3 and worst <= 20 else 1


if __name__ == "__main__":
    raise SystemExit(main())
