"""Frequent mistakes: swapped files, zeros and holes, small maps, names of other libraries."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral import io, tasks
from bilateral.cli.wording import command_line_words
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records


def test_map_and_photograph_are_swapped(here: Path, call: Main) -> None:
    made = disk.scene()
    io.write(here / "gray rgb.png", np.dstack([made.truth] * 3))
    io.write(here / "low.png", made.truth[::4, ::4].copy())
    swapped = "photo.png: is a colour picture, and {}", "the two look swapped"
    for other in ("depth.png", "gray rgb.png"):
        outcome = call("depth", "photo.png", other, "-o", "o.png")
        fails(outcome, swapped[0].format(other), swapped[1], "bilateral depth DEPTH REFERENCE")
    outcome = call("superres", "photo.png", "low.png", "-o", "o.png")
    fails(outcome, swapped[0].format("low.png"), "bilateral superres DEPTH REFERENCE")
    outcome = call(
        "defocus", "depth.png", "photo.png", "-o", "o.png", "--focus", 1, "--aperture", 9
    )
    fails(outcome, swapped[0].format("depth.png"), "bilateral defocus IMAGE DEPTH")
    io.write(here / "gray photo.png", made.photo[..., 0].copy())
    outcome = call("superres", "gray photo.png", "low.png", "-o", "o.png")
    fails(outcome, "48 x 64", "12 x 16", "look swapped", "bilateral superres DEPTH REFERENCE")
    assert not (here / "o.png").exists()
    # Two colour pictures are not swapped.
    assert "swapped" not in fails(call("depth", "photo.png", "photo.png", "-o", "o.png"))


def test_gray_and_strokes_are_swapped(here: Path, call: Main) -> None:
    photo = disk.scene().photo
    gray = photo.mean(axis=2).astype(np.uint8)
    marked = np.dstack([gray] * 3)
    marked[4:6, 4:20] = photo[4:6, 4:20]
    io.write(here / "marked.png", marked)
    io.write(here / "gray.png", gray)
    io.write(here / "gray rgb.png", np.dstack([gray] * 3))
    for name in ("gray.png", "gray rgb.png"):
        outcome = call("colorize", "marked.png", name, "-o", "o.png")
        fails(outcome, f"marked.png: is a colour picture, and {name}", "GRAY SCRIBBLES")
        works(call("colorize", name, "marked.png", "-o", f"of {name}"))


def test_scores_and_photograph_are_swapped(here: Path, call: Main) -> None:
    made = disk.scene()
    near = (made.truth == 1500).astype(np.float32) * 0.8 + 0.1
    io.write(here / "mask.png", np.where(near > 0.5, 255, 0).astype(np.uint8))
    io.write(here / "three.npy", np.dstack([near, (1 - near) / 2, (1 - near) / 2]))
    io.write(here / "many.npy", np.dstack([near] * 7))
    for name in ("mask.png", "three.npy", "many.npy"):
        outcome = call("segment", "photo.png", name, "-o", "o.png")
        fails(outcome, f"photo.png: is a colour picture, and {name}", "PROBABILITIES IMAGE")
        works(call("segment", name, "photo.png", "-o", f"{name}.png"))


def test_folders_are_swapped(here: Path, call: Main) -> None:
    disk.folders(here, 5)
    line = fails(call("depth", "photos", "depths", "-o", "out"), "look swapped", "(5 files;")
    assert "photos/frame 000.jpg" in line


def test_zeros_in_a_map(here: Path, call: Main) -> None:
    low = disk.scene().depth[::2, ::2].copy()
    io.write(here / "low.png", low)
    for command, name in (("depth", "depth.png"), ("superres", "low.png")):
        code, out, err = call(command, name, "photo.png", "-o", f"by {command}.png", "--json")
        assert code == 0
        [warning] = records(out)[0]["warnings"]
        percent = 100 * np.mean(io.read(here / name) == 0)
        assert f"0 counts as a depth in {percent:.2g} % of the known pixels" in warning
        assert "--invalid 0" in warning
        assert err == f"bilateral: {name}: {warning}\n"
    common = ("depth", "depth.png", "photo.png", "-o")
    for number, options in enumerate(
        (("--invalid", 0), ("--invalid", "nan"), ("--preset", "sparse"), ("--preset", "stereo"))
    ):
        works(call(*common, f"{number}.png", *options))
    np.testing.assert_array_equal(io.read(here / "1.png"), io.read(here / "by depth.png"))
    io.write(here / "known.png", (disk.scene().depth > 0).astype(np.uint8))
    works(call(*common, "mask.png", "--mask", "known.png"))
    works(call(*common, "weights.png", "--confidence", "known.png"))
    few = disk.scene().truth.copy()
    few[0, :3] = 0
    io.write(here / "few.png", few)
    works(call("depth", "few.png", "photo.png", "-o", "f.png"))


RAMP = np.linspace(0, 1, 48 * 64).reshape(48, 64)


@pytest.mark.parametrize("command", ["depth", "superres"])
@pytest.mark.parametrize(
    "depth",
    [
        np.where(RAMP < 0.1, 0, 500 + 4000 * RAMP),
        np.where(RAMP < 0.002, 0, 500 + 4000 * RAMP),
        4000 * RAMP,
        np.maximum(4000 * (RAMP - 0.3), 0),
        np.where(RAMP < 0.1, 0, 255),
        np.floor(4 * RAMP),
    ],
    ids=["holes", "few holes", "relative", "clipped", "mask", "few levels"],
)
def test_zeros_are_suspicious_where_the_library_says_so(
    command: str, depth: NDArray[np.float64], here: Path, call: Main
) -> None:
    task = {"depth": tasks.refine_depth, "superres": tasks.superres_depth}[command]
    photo, values = io.read(here / "photo.png"), np.rint(depth).astype(np.uint16)
    io.write(here / "map.png", values)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        task(values, photo)
    common = (command, "map.png", "photo.png", "-o")
    _, out, _ = call(*common, "o.png", "--json")
    found = records(out)[0].get("warnings", [])
    assert ["--invalid 0" in text for text in found] == [True] * len(caught)
    assert len(caught) == (depth[0, 0] == 0 and depth[-1, -1] == 4500)
    works(call(*common, "nan.png", "--invalid", "nan"))


def test_zeros_in_many_maps_are_one_line(here: Path, call: Main) -> None:
    names = disk.folders(here, 4)
    for number, name in enumerate(names):
        depth = disk.scene(number).depth
        depth[20 : 22 + number, :9] = 0
        io.write(here / "depths" / f"{name}.png", depth)
    code, out, err = call("depth", "depths", "photos", "-o", "out", "--json", "--quiet")
    assert code == 0
    assert all("--invalid 0" in record["warnings"][0] for record in records(out))
    [line] = err.splitlines()
    assert "depths/frame 000.png: 0 counts as a depth" in line
    assert "--invalid 0" in line
    assert line.endswith("(4 files; --verbose lists them)")
    code, _, err = call("depth", "depths", "photos", "-o", "all", "--verbose")
    assert (code, len(err.splitlines())) == (0, 4)


def test_holes_for_defocus(here: Path, call: Main) -> None:
    common = ("--focus", 1.5, "--aperture", 9, "--depth-scale", 0.001)
    outcome = call("defocus", "photo.png", "depth.png", "-o", "o.png", *common)
    fails(outcome, "depth.png: expected numbers above 0, got 0 in 2.7 %", "bilateral depth",
          "--invalid 0")  # fmt: skip
    holes = disk.scene().truth / np.float32(1000)
    holes[3, 3] = np.nan
    io.write(here / "nan.pfm", holes)
    line = fails(call("defocus", "photo.png", "nan.pfm", "-o", "o.png", *common), "got nan")
    assert line.endswith("bilateral depth DEPTH IMAGE -o PATH")
    outcome = call("defocus", "photo.png", "nan.pfm", "-o", "o.png", *common, "--kind", "disparity")
    fails(outcome, "expected finite numbers, got nan")
    works(call("defocus", "photo.png", "depth.png", "-o", "o.png", *common, "--kind", "disparity"))


def test_small_maps(here: Path, call: Main) -> None:
    io.write(here / "low.png", disk.scene().truth[::4, ::4].copy())
    outcome = call("depth", "low.png", "photo.png", "-o", "o.png")
    fails(outcome, "low.png: has 12 x 16 pixels", "48 x 64", "bilateral superres DEPTH REFERENCE")
    outcome = call("defocus", "photo.png", "low.png", "-o", "o.png", "--focus", 1, "--aperture", 9)
    fails(outcome, "low.png: has 12 x 16 pixels", "bilateral superres DEPTH REFERENCE")


def test_messages_of_the_library(here: Path, call: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("depth: use tasks.superres_depth(depth_lowres, reference), or invalid=0.")

    monkeypatch.setattr(tasks, "refine_depth", refuse)
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.png")
    fails(outcome, "use bilateral superres DEPTH_LOWRES REFERENCE, or --invalid 0.")
    words = {
        "call bilateral.solve(image, depth).": "call bilateral solve IMAGE DEPTH.",
        "for kind='depth', got 0.0": "for --kind depth, got 0.0",
        "max_iterations=100 or tolerance=1e-3.": "--max-iterations 100 or --tolerance 1e-3.",
        "tasks.refine_segmentation expects": "bilateral segment expects",
        "a depth above 0 in solve": "a depth above 0 in solve",
    }
    for text, expected in words.items():
        assert command_line_words(text) == expected


@pytest.mark.parametrize(
    ("command", "option", "answer"),
    [
        ("solve", "--lam", "Did you mean --smoothness?"),
        ("solve", "--lambda", "Did you mean --smoothness?"),
        ("solve", "--sigma-spatial", "Did you mean --sigma-xy?"),
        ("solve", "--num-iter", "Did you mean --max-iterations?"),
        ("solve", "--sigma_luma", "Did you mean --sigma-luma?"),
        ("solve", "--smothness", "Did you mean --smoothness"),
        ("stereo", "--num-iter", "Did you mean --iterations?"),
        ("stereo", "--max-disp", "Did you mean --max-disparity?"),
        ("depth", "--lam", "--smoothness is an option of solve, stereo, colorize, segment, not"),
        ("depth", "--overwrite", "Did you mean --force?"),
        ("depth", "--threads", "Did you mean --jobs?"),
        (
            "defocus",
            "--invalid",
            "--invalid is an option of solve, depth, complete, superres, stereo, align, not",
        ),
    ],
)
def test_options_of_others(command: str, option: str, answer: str, call: Main) -> None:
    outcome = call(command, "a.png", "b.png", "-o", "c.png", option, 1)
    fails(outcome, f"no such option: {option}. {answer}", f"bilateral {command} --help", code=2)


def test_commands_of_others(call: Main) -> None:
    fails(call("refine_depth", "a", "b"), "refine_depth. Did you mean depth?", code=2)
    fails(call("upsample", "a", "b"), "Did you mean superres?", code=2)
    fails(call("stero", "a", "b"), "Did you mean stereo?", code=2)


def test_our_names_for_the_names_of_others_exist() -> None:
    import typer

    from bilateral.cli.app import app
    from bilateral.cli.commands import other_names

    commands = typer.main.get_group(app).commands
    options = {name for command in commands.values() for p in command.params for name in p.opts}
    assert other_names.OPTIONS.keys() <= options
    assert other_names.COMMANDS.keys() <= commands.keys()
