"""The manifest: one line per file, and runs that continue earlier ones."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral.cli.record import Record
from bilateral.cli.running.manifest import Manifest
from support import scenes_on_disk as disk
from support.command import Main, fails
from support.scenes_on_disk import records

RUN = ("depth", "depths", "photos", "-o", "out", "--invalid", 0, "--manifest", "run.jsonl")


def lines(here: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (here / "run.jsonl").read_text().splitlines() if line]


def test_every_file_has_its_line(here: Path, call: Main) -> None:
    names = disk.folders(here, 4)
    (here / "photos" / f"{names[1]}.jpg").unlink()
    code, _, err = call(*RUN)
    assert code == 1
    written = {Path(str(line["file"])).stem: line for line in lines(here)}
    assert sorted(written) == names
    assert [written[name]["status"] for name in names] == ["done", "failed", "done", "done"]
    assert err == f"bilateral: {written[names[1]]['message']}\n"
    assert written[names[0]]["message"] == ""
    assert written[names[0]]["output"] == f"out/{names[0]}.png"
    assert float(str(written[names[0]]["seconds"])) > 0


def test_a_run_continues(here: Path, call: Main) -> None:
    names = disk.folders(here, 4)
    damaged = here / "depths" / f"{names[3]}.png"
    intact = damaged.read_bytes()
    damaged.write_bytes(b"")
    assert call(*RUN)[0] == 1
    damaged.write_bytes(intact)
    (here / "out" / f"{names[1]}.png").unlink()
    code, out, err = call(*RUN, "--json")
    assert (code, err) == (0, "")
    status = {Path(record["input"]).stem: record["status"] for record in records(out)}
    assert [status[name] for name in names] == ["skipped", "done", "skipped", "done"]
    # Files that an earlier run finished have no second line.
    added = sorted(Path(str(line["file"])).stem for line in lines(here)[4:])
    assert added == [names[1], names[3]]


def test_a_result_of_a_killed_run_counts_as_done(here: Path, call: Main) -> None:
    """The run was killed after it wrote a result and before the result's line was complete."""
    names = disk.folders(here, 3)
    assert call(*RUN, "--jobs", 1)[0] == 0
    text = (here / "run.jsonl").read_text()
    (here / "run.jsonl").write_text(text[: text.rindex("{") + 30])
    before = (here / "out" / f"{names[2]}.png").stat().st_mtime_ns
    code, out, err = call(*RUN, "--json", "--jobs", 1)
    assert (code, err) == (0, "")
    assert [record["status"] for record in records(out)] == ["skipped", "skipped", "done"]
    assert (here / "out" / f"{names[2]}.png").stat().st_mtime_ns == before
    assert json.loads((here / "run.jsonl").read_text().splitlines()[-1])["status"] == "done"


def test_files_of_others_stay(here: Path, call: Main) -> None:
    """A result that the manifest does not have, with other bytes, is not replaced."""
    names = disk.folders(here, 2)
    assert call(*RUN, "--jobs", 1)[0] == 0
    (here / "run.jsonl").write_text((here / "run.jsonl").read_text().splitlines(True)[0])
    theirs = here / "out" / f"{names[1]}.png"
    theirs.write_bytes(b"theirs")
    fails(call(*RUN), f"{theirs.name}: exists already")
    assert theirs.read_bytes() == b"theirs"


def test_other_files_are_no_manifest(here: Path, call: Main) -> None:
    disk.folders(here, 1)
    (here / "run.jsonl").write_text("my notes\n")
    fails(call(*RUN), "run.jsonl: line 1 is no JSON", "Choose another name for --manifest")
    assert (here / "run.jsonl").read_text() == "my notes\n"
    (here / "run.jsonl").unlink()
    outcome = call(*RUN[:-1], "depths/frame 000.png")
    fails(outcome, "would replace the input", code=2)


RECORDS = st.builds(
    Record,
    st.text(min_size=1, max_size=8),
    output=st.none() | st.text(max_size=5),
    status=st.sampled_from(["done", "skipped", "failed"]),
    seconds=st.floats(0, 1e4),
    warnings=st.lists(st.text(max_size=5), max_size=2),
    error=st.none() | st.text(max_size=9),
)


@given(first=st.lists(RECORDS, max_size=8), second=st.lists(RECORDS, max_size=8), cut=st.data())
def test_reading_back(
    first: list[Record], second: list[Record], cut: st.DataObject, tmp_path: Path
) -> None:
    """The last complete line about a file counts, wherever the end of the first run is."""
    path = tmp_path / "m.jsonl"
    path.unlink(missing_ok=True)
    with Manifest(str(path)) as manifest:
        for record in first:
            manifest.add(record)
    text = path.read_bytes()
    path.write_bytes(text[: cut.draw(st.integers(0, len(text)))])
    expected = {}
    for line in path.read_bytes().splitlines():
        try:
            entries = json.loads(line)
        except ValueError:
            continue
        expected[entries["file"]] = entries["status"]
    with Manifest(str(path)) as manifest:
        for file in {record.input for record in first}:
            assert manifest.is_done(file) == (expected.get(file) in ("done", "skipped"))
        for record in second:
            if not (record.status == "skipped" and manifest.is_done(record.input)):
                expected[record.input] = record.status
            manifest.add(record)
    with Manifest(str(path)) as manifest:
        for file, status in expected.items():
            assert manifest.is_done(file) == (status in ("done", "skipped"))
