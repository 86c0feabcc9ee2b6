"""Pair files: by name, by order, by the numbers in their names, by a list."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

import bilateral
from bilateral import io, tasks
from bilateral.cli.errors import UsageError
from bilateral.cli.files import name_numbers, pairing, patterns, sources
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records

RGB = ("1305031102.175304", "1305031102.211214", "1305031102.243211", "1305031102.275326")
MAPS = ("1305031102.160407", "1305031102.194330", "1305031102.230738", "1305031102.262886")


@pytest.fixture
def tum(here: Path) -> Path:
    """Write maps and photographs whose names are time stamps, a different scene for each."""
    for number, (rgb, depth) in enumerate(zip(RGB, MAPS, strict=True)):
        made = disk.scene(number)
        for path, array in ((f"rgb/{rgb}.png", made.photo), (f"depth/{depth}.png", made.depth)):
            (here / path).parent.mkdir(exist_ok=True)
            io.write(here / path, array)
    return here


def check_results(folder: Path) -> None:
    """Check that each map was refined with its own photograph."""
    assert sorted(path.stem for path in folder.iterdir()) == sorted(MAPS)
    for number, name in enumerate(MAPS):
        made = disk.scene(number)
        expected = tasks.refine_depth(made.depth, made.photo, invalid=0)
        np.testing.assert_array_equal(io.read(folder / f"{name}.png"), expected)


def test_names_that_differ(tum: Path, call: Main) -> None:
    outcome = call("depth", "depth", "rgb", "-o", "out")
    fails(outcome, "no file in rgb", "--pair sorted", "--pair nearest", MAPS[0], RGB[0], code=2)
    assert not (tum / "out").exists()


def test_sorted(tum: Path, call: Main) -> None:
    common = ("depth", "depth/", "rgb/", "--invalid", 0, "--pair", "sorted", "-o")
    works(call(*common, "out"))
    check_results(tum / "out")
    (tum / "rgb" / f"{RGB[0]}.png").unlink()
    fails(call(*common, "new"), "--pair sorted", "got 3 and 4", "--pair nearest", code=2)
    assert not (tum / "new").exists()


def test_nearest(tum: Path, call: Main) -> None:
    common = ("depth", "depth", "rgb", "--invalid", 0, "--pair", "nearest", "--json", "-o")
    code, out, err = call(*common, "out")
    assert (code, len(err.splitlines())) == (0, 1)
    assert "4 of 4 files have a partner in rgb, at most 0.016" in err
    check_results(tum / "out")
    for record in records(out):
        assert record["inputs"]["depth"] == record["input"]
        number = MAPS.index(Path(record["input"]).stem)
        assert record["inputs"]["reference"] == f"rgb/{RGB[number]}.png"
    io.write(tum / "depth" / "1305031199.5.png", disk.scene().depth)
    code, out, err = call(*common, "new")
    assert code == 1
    assert "4 of 5 files" in err.splitlines()[0]
    assert "no file near 1305031199.5 in rgb: the nearest number is 97.2" in err.splitlines()[1]
    assert call(*common, "quiet", "--quiet")[2].count("\n") == 1


def test_nearest_without_numbers(here: Path, call: Main) -> None:
    names = disk.folders(here, 2)
    for number, name in enumerate(names):
        (here / "photos" / f"{name}.jpg").rename(here / "photos" / f"{'ab'[number]}.jpg")
    outcome = call("depth", "depths", "photos", "-o", "out", "--pair", "nearest")
    fails(outcome, "--pair nearest", "one number", "photos", "a and b", code=2)


LISTS = {
    "words": [f"depth/{m}.png rgb/{r}.png" for m, r in zip(MAPS, RGB, strict=True)],
    "tabs": [f"depth/{m}.png\trgb/{r}.png" for m, r in zip(MAPS, RGB, strict=True)],
    "commas": [f"{m}.png, {r}.png" for m, r in zip(MAPS, RGB, strict=True)],
    "tum": [f"{m} depth/{m}.png {r} rgb/{r}.png" for m, r in zip(MAPS, RGB, strict=True)],
    "tum, rgb first": [
        f"{r} rgb/{r}.png {m} depth/{m}.png" for m, r in zip(MAPS, RGB, strict=True)
    ],
}


@pytest.mark.parametrize("kind", LISTS)
def test_lists(kind: str, tum: Path, call: Main) -> None:
    (tum / "lists").mkdir()
    for place in ("pairs.txt", "lists/pairs.txt"):
        text = "\r\n".join(["# depth and rgb", "", *LISTS[kind], ""])
        (tum / place).write_text(text, encoding="utf-8-sig", newline="")
        out = f"out {len(place)}"
        works(call("depth", "depth/", "rgb/", "-o", out, "--pair", place, "--invalid", 0))
        check_results(tum / out)


def test_a_list_of_some_pairs(tum: Path, call: Main) -> None:
    (tum / "pairs.txt").write_text(LISTS["words"][2])
    (tum / "truth").mkdir()
    io.write(tum / "truth" / f"{MAPS[2]}.png", disk.scene(2).truth)
    code, out, err = call(
        "solve", "rgb", "depth", "-o", "out", "--pair", "pairs.txt", "--truth", "truth", "--json"
    )
    assert (code, err) == (0, "")
    [record] = records(out)
    assert Path(record["input"]).stem == MAPS[2]
    assert record["inputs"]["reference"] == f"rgb/{RGB[2]}.png"
    made = disk.scene(2)
    np.testing.assert_array_equal(
        io.read(tum / "out" / f"{MAPS[2]}.png"),
        bilateral.solve(made.photo, made.depth.astype(np.float32), dtype=np.uint16),
    )


def test_equal_names_follow_the_order_of_the_command(here: Path, call: Main) -> None:
    for folder in ("left", "right"):
        (here / folder).mkdir()
        for name in ("1.png", "2.png"):
            io.write(here / folder / name, disk.scene().photo)
    (here / "pairs").write_text("1.png 2.png\n2.png 1.png\n")
    code, out, _ = call(
        "stereo", "left", "right", "-o", "out", "--max-disparity", 4, "--pair", "pairs", "--json"
    )
    assert code == 0
    found = {(r["inputs"]["left"], r["inputs"]["right"]) for r in records(out)}
    assert found == {("left/1.png", "right/2.png"), ("left/2.png", "right/1.png")}


def test_wrong_lists(tum: Path, call: Main) -> None:
    good, path = LISTS["words"], tum / "pairs.txt"
    wrong = {
        f"{good[0]}\n\nonly_one.png": ["pairs.txt, line 3", "two file names", "only_one.png"],
        "a b c d": ["pairs.txt, line 1", "time stamp"],
        f"# x\n{good[0]}\ndepth/none.png rgb/none.png": [
            "pairs.txt, line 3: depth/none.png is no file of depth",
        ],
        f"{good[0]}\ndepth/{MAPS[1]}.png rgb/none.png": [
            "pairs.txt, line 2: rgb/none.png is no file of rgb",
        ],
        f"{good[0]}\n{good[1]}\n{good[0]}": ["line 3", MAPS[0], "line 1", "once"],
        "# nothing\n": ["pairs.txt", "no line"],
        "a\0b": ["pairs.txt", "as text"],
    }
    common = ("depth", "depth", "rgb", "-o", "out", "--pair")
    for text, parts in wrong.items():
        path.write_text(text)
        fails(call(*common, "pairs.txt"), *parts, code=2)
    fails(call(*common, "none.txt"), "--pair", "sorted, nearest or a list file", "none.txt", code=2)
    fails(call(*common, "depth"), "--pair", "no file", code=2)
    path.write_text(good[0])
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.png", "--pair", "pairs.txt")
    fails(outcome, "--pair", "folders or patterns", "depth.png", code=2)
    assert not (tum / "out").exists()


def test_pairing_one_file(here: Path, call: Main) -> None:
    for rule in ("name", "sorted", "nearest"):
        works(call("depth", "depth.png", "photo.png", "-o", f"{rule}.png", "--pair", rule,
                   "--invalid", 0))  # fmt: skip


def test_numbers_in_names() -> None:
    assert sorted(["b10", "b9", "a11", "b9.5"], key=name_numbers.natural_order) == [
        "a11", "b9", "b9.5", "b10",
    ]  # fmt: skip
    varying = name_numbers.varying_numbers
    assert varying(["cam2_07", "cam2_13"]) == {"cam2_07": 7, "cam2_13": 13}
    assert varying(["scene1_07"]) == {"scene1_07": 7}
    for names in (["a1_2", "a2_3"], ["a", "b"], ["1", "x"], ["a1", "a1_2"], ["a1", "b1"]):
        assert varying(names) is None
    nanoseconds = ["1305031102175304000", "1305031102175304001"]
    numbers = list((varying(nanoseconds) or {}).values())
    assert numbers[1] - numbers[0] == 1
    assert name_numbers.nearest(numbers[1], numbers) == numbers[1]
    assert name_numbers.usual_step(numbers) == 1
    assert name_numbers.usual_step(numbers[:1]) is None


def test_two_files_with_one_number(tmp_path: Path) -> None:
    found = {
        "depth": sources.Source("d", many={"1": [Path("d/1.png")], "5": [Path("d/5.png")]}),
        "reference": sources.Source("r", many={"1": [Path("r/1.png")], "01": [Path("r/01.png")],
                                               "5": [Path("r/5.png")]}),
    }  # fmt: skip
    paired = pairing.pair(found, ("depth", "reference"), "depth", "nearest")
    assert paired.sources["reference"].find("5") == Path("r/5.png")
    with pytest.raises(io.FileError, match="several files for 1 in r"):
        paired.sources["reference"].find("1")


def keys(folder: Path, pattern: str) -> list[str]:
    return list(sources.expand(f"{folder}/{pattern}").many)


def test_degenerate_patterns(tmp_path: Path) -> None:
    names = ("a.png", "a.x.png", "a1.jpg", "b-.png", "b].png", "v1.01.png", "sub/in/c.png", "n")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert keys(tmp_path, "a*.png") == ["", ".x"]
    assert keys(tmp_path, "a.p*") == [""]
    assert keys(tmp_path, "a.[pj]?g") == [""]
    assert keys(tmp_path, "a*") == ["", ".x", "1"]
    assert keys(tmp_path, "a.*") == ["", "x"]
    assert keys(tmp_path, "v1.0*") == ["1"]
    assert keys(tmp_path, "b[!]a].png") == ["-"]
    assert keys(tmp_path, "b[]-].png") == ["-", "]"]
    assert keys(tmp_path, "b[a-z--].png") == ["-"]
    assert keys(tmp_path, "?") == ["n"]
    assert keys(tmp_path, "sub/**") == ["in/c"]
    assert keys(tmp_path, "**/**/c.png") == ["sub/in"]
    assert keys(tmp_path, "a***.jpg") == ["1"]
    assert patterns.fixed_folder("/*.png") == Path("/")


def test_a_reversed_range(here: Path, call: Main) -> None:
    outcome = call("depth", "in/[z-a].png", "photo.png", "-o", "out")
    fails(outcome, "[z-a]: expected a range", "got z-a", code=2)
    with pytest.raises(UsageError, match="9-0"):
        keys(here, "x[!9-0]")


def test_wildcards_without_text(tmp_path: Path) -> None:
    for name in ("a.png", "a.tif"):
        (tmp_path / name).touch()
    found = sources.expand(f"{tmp_path}/a*")
    with pytest.raises(io.FileError, match=r"several files for wildcards without text.*a\.png"):
        found.find("")
