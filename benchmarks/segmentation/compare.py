"""Ours, the network's, a plain solve's and the dense CRF's: how right, and how fast."""

from typing import Any

import bilateral
from benchmarks.machine import Others
from benchmarks.segmentation import peers
from benchmarks.segmentation.cases import Case, mean_iou
from benchmarks.timing import Timing, clock
from bilateral.tasks import refine_segmentation


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
