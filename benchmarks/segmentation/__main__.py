"""The one command: ``python -m benchmarks.segmentation [--data DIR]``, from the root folder."""

import argparse
from typing import Any

import bilateral
from benchmarks import command
from benchmarks.segmentation import peers, report
from benchmarks.segmentation.cases import CELLS, from_folder, made, pictures
from benchmarks.segmentation.compare import compare, speed

TARGETS = {"gain_at_least": 2.0, "loss_at_most": 0.2, "crf_over_ours_at_least": 6.0}


def main() -> None:
    options = command.options(
        "segmentation",
        "Refine class probabilities, and compare with the paper's solve and with a dense CRF.",
        data="a folder with deeplab_probs/*.npz, photographs and labels; without it, made scores",
        quick="one repeat of one small made picture",
        repeats=7,
    )
    command.write("segmentation", measure(options), report.as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    circumstances = command.circumstances()
    real = [] if options.quick or options.data is None else list(from_folder(options.data))
    known = [(case.name, case.photo, case.truth) for case in real]
    known = known or list(pictures(128 if options.quick else 512))[: 1 if options.quick else None]
    spoilt = [
        made(*picture, cell, seed)
        for seed, cell in enumerate(CELLS[-1:] if options.quick else CELLS)
        for picture in known
    ]
    return {
        **circumstances,
        "settings": {"repeats": options.repeats, "threads": bilateral.get_num_threads()},
        "targets": TARGETS,
        "crf_skipped": None if peers.densecrf else peers.MISSING,
        "cases": [compare(case) for case in real + spoilt],
        "speed": [speed(case, options.repeats) for case in real or spoilt[-len(known) :]],
    }


if __name__ == "__main__":
    main()
