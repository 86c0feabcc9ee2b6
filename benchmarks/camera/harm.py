"""Measure the harm of refinement: pixels inside surfaces that were right and are not any more."""

from collections.abc import Iterator

from benchmarks.camera import methods
from benchmarks.camera.metrics import harm, inside
from benchmarks.camera.pictures import Gallery
from benchmarks.camera.spoil import AS_IT_IS, PHOTOS
from benchmarks.common.cells import Results, Setting
from benchmarks.common.rgbd import Frame
from benchmarks.common.tables import at_most, behind, bullets, page, table

MOST = 0.1  # percent


def measure(maps: list[Frame], setting: Setting, gallery: Gallery) -> Iterator[Results]:
    """Yield the harm on each map: ours with each photograph, the peers' with the good one."""
    for frame in maps:
        inner = inside(frame.depth)
        ours = {}
        for name, spoil in PHOTOS.items():
            photographed = frame._replace(photo=spoil(frame.photo))
            refined = methods.ours(photographed)
            ours[name] = harm(frame.depth, refined)
            gallery.add_harm(photographed, name, refined, inner)
        peers: dict[str, float] = {}
        for name, refined in methods.peers(frame, setting.python):
            peers[name] = min(peers.get(name, 100.0), harm(frame.depth, refined))
        inner_percent = 100 * float(inner.mean())
        yield {"map": frame.name, "inside": inner_percent, "ours": ours, "peers": peers}


def as_text(rows: list[Results]) -> str:
    worst = {name: max(row["ours"][name] for row in rows) for name in PHOTOS}
    losses = [
        f"{row['map']}: {row['ours'][AS_IT_IS]:.3f} %, {name} {peer:.3f} %"
        for row in rows
        for name, peer in row["peers"].items()
        if row["ours"][AS_IT_IS] > max(peer, MOST)
    ]
    return page(
        "## Harm\n\nPercentage of the known pixels inside surfaces (all of 9 x 9 known and within "
        "3 %) that refine_depth moves by more than 5 %, with each photograph.",
        table(
            rows,
            "map | {map}; inside, % | {inside:.0f}",
            *(f"{name} | {{ours[{name}]:.3f}}" for name in PHOTOS),
        ),
        "The peers with the photograph as it is, each with its least harmful setting.",
        table(rows, "map | {map}", *(f"{n} | {{peers[{n}]:.3f}}" for n in rows[0]["peers"])),
        bullets(
            "Largest of all maps, in percent:",
            [f"photograph {name}: {at_most(value, MOST, '.3f')}" for name, value in worst.items()],
        ),
        behind(losses, f"No peer harms less where refine_depth harms more than {MOST} %."),
    )
