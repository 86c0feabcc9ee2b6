"""`python -m fuzz`: run harnesses for some minutes, or replay one seed."""

from __future__ import annotations

import argparse
import os
import random
import sys
import traceback
from pathlib import Path

from fuzz.campaign import Campaign
from fuzz.draw import Draw
from fuzz.harnesses import NAMES, load
from fuzz.worker import quiet_warnings, run_case


def main() -> int:
    """Return 1 if there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("harness", nargs="*", help=f"all by default: {', '.join(NAMES)}")
    parser.add_argument("--minutes", type=float, default=2.0, help="time for all harnesses")
    parser.add_argument("--cases", type=int, help="largest number of cases of each harness")
    parser.add_argument("--seed", type=int, help="first seed; a new one by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--report", type=Path, help="write counts and findings to this JSON file")
    parser.add_argument("--replay", metavar="HARNESS:SEED", help="run one case again")
    given = parser.parse_args()
    if given.replay:
        return replay(given.replay)
    unknown = [name for name in given.harness if name not in NAMES]
    if unknown:
        parser.error(f"no harness {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    seed = random.SystemRandom().randrange(1 << 40) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    os.environ.setdefault("BILATERAL_NUM_THREADS", "1")
    names = given.harness or NAMES
    campaign = Campaign(names, seed, 60 * given.minutes, given.cases, given.jobs)
    campaign.run(given.report)
    print(campaign.table())
    return 1 if campaign.findings else 0


def replay(place: str) -> int:
    """Run the case of a harness and a seed in this process."""
    name, _, seed = place.partition(":")
    quiet_warnings()
    os.environ.setdefault("BILATERAL_NUM_THREADS", "1")
    try:
        calls, valid = run_case(load(name), int(seed), Draw())
    except Exception:
        traceback.print_exc()
        return 1
    print(f"{place}: {calls} calls, {valid} of them valid, no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
