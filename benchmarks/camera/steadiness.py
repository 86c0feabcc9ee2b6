"""Measure how refined videos change in time: flicker, and errors where something moves."""

from collections.abc import Iterator

import numpy as np

from benchmarks.camera.harm import MOST
from benchmarks.camera.methods import INPUT
from benchmarks.camera.metrics import error, flicker, harm, lag, steady, wrong
from benchmarks.camera.pictures import Gallery
from benchmarks.camera.scenes import (
    STANDING,
    CameraScenes,
    moving_box,
    spoiled_video,
    standing,
)
from benchmarks.camera.videos import SINGLE, STREAM, WHOLE, methods
from benchmarks.common.cells import Results
from benchmarks.common.rgbd import Video
from benchmarks.common.tables import at_most, behind, bullets, page, table

# Largest RMS of the second difference in time, over the input's.
AIMS = {
    "tum_fr1_desk": {STREAM: 0.66, WHOLE: 0.50},
    "phone_lidar_doorhandle": {STREAM: 0.90, WHOLE: 0.75},
    STANDING: {STREAM: 0.40, WHOLE: 0.40},
}
OURS = (SINGLE, STREAM, WHOLE)
NO_WORSE = 1.0  # largest error over that of single frames


def measure(scenes: CameraScenes, gallery: Gallery) -> Results:
    videos = [*scenes.recorded, standing(scenes.rendered)]
    return {
        "flicker": [_flicker(video, gallery) for video in videos],
        "moving": list(_moving(scenes.rendered, gallery)),
    }


def _flicker(video: Video, gallery: Gallery) -> Results:
    where = steady(video.depths)
    base = flicker(video.depths, where)
    rows = {}
    for name, method in methods().items():
        refined = method(video)
        ratio = flicker(refined, where).over(base)
        harmed = max(map(harm, video.depths, refined))
        late = lag(refined, video.depths, where)
        rows[name] = {**ratio._asdict(), "lag": late, "harm": harmed}
        if name in OURS:
            gallery.add_flicker(video, name, refined, where)
    percent = 100 * float(where.mean())
    return {"video": video.name, "steady": percent, "input": base._asdict(), "methods": rows}


def _moving(rendered: Video, gallery: Gallery) -> Iterator[Results]:
    """Yield errors with a moving camera, and where a box moves in front of a standing camera."""
    pasted = moving_box(rendered)
    for video, swept in ((spoiled_video(rendered), None), pasted):
        assert video.truth is not None
        where = np.ones(video.truth.shape, bool) if swept is None else swept
        rows = {}
        for name, method in methods().items():
            refined = method(video)
            numbers = error(refined, np.where(where, video.truth, np.nan))
            percent = wrong(refined, video.truth, where)
            rows[name] = {"error": numbers._asdict(), "wrong": percent}
            if name in OURS:
                gallery.add_moving(video, name, refined, where)
        yield {"video": video.name, "where": "all" if swept is None else "swept", "methods": rows}


def as_text(results: Results) -> str:
    rows = [
        {"video": video["video"], "steady": video["steady"], "name": name, **row}
        for video in results["flicker"]
        for name, row in video["methods"].items()
    ]
    moving = [
        {"video": video["video"], "where": video["where"], "name": name, **row}
        for video in results["moving"]
        for name, row in video["methods"].items()
    ]
    return page(
        "## Change in time\n\nRMS and mean of the second difference in time over the input's, at "
        "steady pixels: known in all frames, standard deviation in time below 1 %. Lag: RMS "
        "deviation of means over 31 x 31 steady pixels from the input's, in percent of the depth. "
        "Harm: of the worst frame.",
        table(
            rows,
            "video | {video}; steady, % | {steady:.0f}; method | {name}",
            "RMS | {rms:.2f}; mean | {mean:.2f}; lag, % | {lag:.3f}; harm, % | {harm:.3f}",
        ),
        bullets("RMS over the input's:", _flicker_verdicts(results["flicker"])),
        "Errors against truth with a moving camera, and in the zone that a pasted box sweeps: in "
        "m, and the percentage of pixels off by more than 5 %.",
        table(
            moving,
            "video | {video}; pixels | {where}; method | {name}",
            "mean | {error[mean]:.4f}; RMS | {error[rms]:.4f}; wrong, % | {wrong:.2f}",
        ),
        bullets("Over the frames one by one:", _moving_verdicts(results["moving"])),
        behind(list(_losses(results)), "No peer is steadier or has a lower error."),
    )


def _flicker_verdicts(videos: list[Results]) -> Iterator[str]:
    for video in videos:
        for name, aim in AIMS.get(video["video"], {}).items():
            row = video["methods"][name]
            harmed = at_most(row["harm"], MOST, ".3f")
            yield f"{video['video']}, {name}: {at_most(row['rms'], aim)}; harm in % {harmed}"


def _moving_verdicts(videos: list[Results]) -> Iterator[str]:
    for video in videos:
        single = video["methods"][SINGLE]
        for name in (STREAM, WHOLE):
            row = video["methods"][name]
            ratios = [row["error"][key] / single["error"][key] for key in ("mean", "rms")]
            mean, rms = (at_most(ratio, NO_WORSE, ".3f") for ratio in ratios)
            share = at_most(row["wrong"], single["wrong"])
            yield f"{video['video']}, {name}: mean {mean}, RMS {rms}; wrong pixels in % {share}"


def _losses(results: Results) -> Iterator[str]:
    for video in results["flicker"]:
        best = min(video["methods"][name]["rms"] for name in OURS)
        for name, row in video["methods"].items():
            if name not in (*OURS, INPUT) and row["rms"] < best:
                yield f"{video['video']}: {best:.2f} at best, {name} {row['rms']:.2f}"
    for video in results["moving"]:
        best = min(video["methods"][name]["error"]["mean"] for name in OURS)
        for name, row in video["methods"].items():
            if name not in OURS and row["error"]["mean"] < best:
                yield f"{video['video']}: {best:.4f} m at best, {name} {row['error']['mean']:.4f}"
