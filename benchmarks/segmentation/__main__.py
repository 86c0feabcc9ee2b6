"""The one command: ``python -m benchmarks.segmentation [--data DIR]``, from the root folder."""

import argparse
from typing import Any

import bilateral
from benchmarks import command
from benchmarks.machine import Others
from benchmarks.segmentation import peers, report
from benchmarks.segmentation.cases import CELLS, Case, from_folder, made, mean_iou, pictures
from benchmarks.timing import Timing, clock
from bilateral.tasks import refine_segmentation

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


def compare(case: Case) -> dict[str, Any]:
    """The mean IoU of each way."""
    plain = bilateral.solve(
        case.photo, case.p, sigma_xy=16, sigma_luma=16, sigma_chroma=8, smoothness=64
    )
    found = {
        "network": case.p.argmax(axis=2),
        "plain solve": plain.argmax(axis=2),
        "uniform": refine_segmentation(case.p, case.photo, labels=True, confidence="uniform"),
        "ours": refine_segmentation(case.p, case.photo, labels=True),
    }
    if peers.densecrf:
        for name, sigmas in peers.SETTINGS.items():
            found[name] = peers.dense_crf(case.p, case.photo, sigmas)
    scores = {way: mean_iou(labels, case.truth) for way, labels in found.items()}
    return {"name": case.name, "source": case.source, "iou": scores}


def speed(case: Case, repeats: int) -> dict[str, Any]:
    """Whole calls in turns, both from probabilities of the image's size."""
    others = Others()
    ours: list[float] = []
    crf: dict[str, list[float]] = {name: [] for name in peers.SETTINGS if peers.densecrf}
    for repeat in range(repeats + 1):
        seconds = {
            name: clock(peers.dense_crf, case.p, case.photo, peers.SETTINGS[name])[0]
            for name in crf
        }
        took = clock(refine_segmentation, case.p, case.photo)[0]
        if repeat > 0:
            ours.append(took)
            for name, second in seconds.items():
                crf[name].append(second)
    own = Timing.of(ours)
    peer = min((Timing.of(times) for times in crf.values()), key=lambda t: t.median, default=None)
    return {
        "name": case.name,
        "ours": own,
        "crf": peer,
        "ratio": peer.median / own.median if peer else None,
        "other_work": others.cores(),
    }


if __name__ == "__main__":
    main()
