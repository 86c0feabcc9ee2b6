"""Folders and patterns: pairs of files, failures, existing results, threads per job."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

import bilateral
from bilateral import io, tasks
from bilateral.cli.files import sources
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records


def test_folders(here: Path, call: Main) -> None:
    names = disk.folders(here, 5)
    (here / "photos" / f"{names[0]}.preview.png").write_bytes(b"no input")
    (here / "depths" / "notes.txt").write_text("no picture")
    (here / "depths" / ".bilateral-0.tmp").write_text("left behind")
    code, out, err = call(
        "depth", "depths", "photos", "-o", "out", "--json", "--invalid", 0, "--truth", "truths",
        "--report", "all.html", "--preview", "--jobs", 2,
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert sorted(Path(record["input"]).stem for record in records(out)) == names
    assert all(record["figures"]["after"]["mae"] < 100 for record in records(out))
    expected = [f"{name}{suffix}" for name in names for suffix in (".png", ".preview.png")]
    assert sorted(path.name for path in (here / "out").iterdir()) == sorted(expected)
    assert (here / "all.html").read_text().count("<h2>") == 5
    for number, name in enumerate(names):
        made = disk.scene(number)
        photo = io.read(here / "photos" / f"{name}.jpg")
        expected_depth = tasks.refine_depth(made.depth, photo, invalid=0)
        np.testing.assert_array_equal(io.read(here / "out" / f"{name}.png"), expected_depth)


def test_patterns_and_one_photograph_for_all(here: Path, call: Main) -> None:
    disk.folders(here, 3)
    works(
        call(
            "depth",
            "depths/frame *.png",
            "photo.png",
            "-o",
            "out",
            "--format",
            "tif",
            "--invalid",
            0,
        )
    )
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        "000.tif",
        "001.tif",
        "002.tif",
    ]
    for scene in ("a", "b"):
        (here / "scenes" / scene).mkdir(parents=True)
        io.write(here / "scenes" / scene / "depth.png", disk.scene().depth)
        io.write(here / "scenes" / scene / "im0.png", disk.scene().photo)
    works(call("depth", "scenes/*/depth.png", "scenes/*/im0.png", "-o", "each", "--invalid", 0))
    assert sorted(path.name for path in (here / "each").iterdir()) == ["a.png", "b.png"]


def test_failures_do_not_stop_the_rest(here: Path, call: Main) -> None:
    names = disk.folders(here, 5)
    (here / "depths" / f"{names[1]}.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (here / "photos" / f"{names[2]}.jpg").unlink()
    io.write(here / "photos" / f"{names[3]}.jpg", np.zeros((9, 9), np.uint8))
    code, out, err = call("depth", "depths", "photos", "-o", "out", "--json", "--invalid", 0)
    assert code == 1
    lines = err.splitlines()
    assert len(lines) == 3
    assert f"depths/{names[1]}.png: " in lines[0]
    assert f"no file for {names[2]} in photos" in lines[1]
    assert f"depths/{names[3]}.png: depth: expected" in lines[2]
    status = {Path(record["input"]).stem: record["status"] for record in records(out)}
    assert [status[name] for name in names] == ["done", "failed", "failed", "failed", "done"]
    assert sorted(path.stem for path in (here / "out").iterdir()) == [names[0], names[4]]
    failed = [record for record in records(out) if record["status"] == "failed"]
    assert all(record["error"] for record in failed)


@pytest.mark.stress
def test_every_file_has_its_line_of_json(here: Path) -> None:
    pytest.importorskip("OpenEXR", reason="EXR files need OpenEXR")
    for number in range(24):
        made = disk.scene(number)
        for folder, array in (("depths", made.depth), ("photos", made.photo / 255)):
            (here / folder).mkdir(exist_ok=True)
            io.write(here / folder / f"{number}.exr", array.astype(np.float32))
    damaged = here / "depths" / "7.exr"
    damaged.write_bytes(damaged.read_bytes()[:-100] + bytes(100))
    done = disk.run(
        "depth",
        "depths",
        "photos",
        "-o",
        "out",
        "--json",
        "--jobs",
        6,
        "--invalid",
        0,
        cwd=here,
        text=True,
    )
    status = {Path(record["input"]).stem: record["status"] for record in records(done.stdout)}
    assert len(done.stdout.splitlines()) == len(status) == 24
    assert {name for name, outcome in status.items() if outcome == "failed"} == {"7"}
    assert len(done.stderr.splitlines()) == 1
    assert "depths/7.exr: is damaged" in done.stderr


def test_a_result_of_another_process_counts_as_skipped(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = disk.folders(here, 2)
    real = tasks.refine_depth

    def while_another_process_writes(*given: Any, **options: Any) -> Any:
        (here / "out" / f"{names[0]}.png").write_bytes(b"theirs")
        return real(*given, **options)

    monkeypatch.setattr(tasks, "refine_depth", while_another_process_writes)
    run = ("depth", "depths", "photos", "-o", "out", "--json", "--jobs", 1, "--invalid", 0)
    code, out, err = call(*run, "--skip-existing")
    assert (code, err) == (0, "")
    skipped, done = records(out)
    assert (skipped["status"], done["status"]) == ("skipped", "done")
    assert "shape" not in skipped
    assert (here / "out" / f"{names[0]}.png").read_bytes() == b"theirs"
    (here / "out" / f"{names[0]}.png").unlink()
    (here / "out" / f"{names[1]}.png").unlink()
    code, out, err = call(*run)
    assert code == 1
    assert f"{names[0]}.png: exists already" in err


def test_two_files_of_one_name(here: Path, call: Main) -> None:
    [name] = disk.folders(here, 1)
    io.write(here / "photos" / f"{name}.png", disk.scene().photo)
    fails(call("depth", "depths", "photos", "-o", "out"), f"several files for {name} in photos")


def test_existing_files(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "-o", "out.png", "--invalid", 0)
    (here / "out.png").write_bytes(b"mine")
    fails(call(*common), "out.png: exists already", "--force")
    assert (here / "out.png").read_bytes() == b"mine"
    code, out, _ = call(*common, "--skip-existing", "--json")
    assert (code, records(out)[0]["status"]) == (0, "skipped")
    assert (here / "out.png").read_bytes() == b"mine"
    works(call(*common, "--force"))
    assert io.read(here / "out.png").shape == (48, 64)
    fails(call(*common, "--force", "--skip-existing"), "exclude each other", code=2)
    (here / "r.html").touch()
    outcome = call("depth", "depth.png", "photo.png", "-o", "n.png", "--report", "r.html")
    fails(outcome, "r.html: exists already")
    assert not (here / "n.png").exists()


def test_resuming(here: Path, call: Main) -> None:
    names = disk.folders(here, 4)
    works(call("depth", "depths", "photos", "-o", "out", "--invalid", 0))
    kept = (here / "out" / f"{names[0]}.png").stat().st_mtime_ns
    (here / "out" / f"{names[2]}.png").unlink()
    code, out, _ = call("depth", "depths", "photos", "-o", "out", "--skip-existing", "--json")
    assert code == 0
    status = {Path(record["input"]).stem: record["status"] for record in records(out)}
    assert [status[name] for name in names] == ["skipped", "skipped", "done", "skipped"]
    assert (here / "out" / f"{names[0]}.png").stat().st_mtime_ns == kept


def test_threads_are_shared_among_jobs(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch, keep_num_threads: None
) -> None:
    disk.folders(here, 3)
    seen = []
    real = tasks.refine_depth

    def spy(*given: Any, **options: Any) -> Any:
        seen.append(bilateral.get_num_threads())
        return real(*given, **options)

    monkeypatch.setattr(tasks, "refine_depth", spy)
    bilateral.set_num_threads(6)
    works(call("depth", "depths", "photos", "-o", "a", "--jobs", 3, "--invalid", 0))
    works(call("depth", "depths", "photos", "-o", "b", "--jobs", 1, "--invalid", 0))
    assert seen == [2, 2, 2, 6, 6, 6]
    assert bilateral.get_num_threads() == 6


def test_keys_of_patterns(tmp_path: Path) -> None:
    for name in ("a_1.png", "a_2.png", "b_1.jpg", ".hidden_3.png", "sub/deep/c_4.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def keys(pattern: str) -> list[str]:
        return list(sources.expand(str(tmp_path / pattern)).many)

    assert keys("*.png") == ["a_1", "a_2"]
    assert keys("*") == ["a_1", "a_2", "b_1"]
    assert keys("?_[12].png") == ["a/1", "a/2"]
    assert keys("?_[!2].*") == ["a/1", "b/1"]
    assert keys("**/*_*.png") == ["a/1", "a/2", "sub/deep/c/4"]
    assert sources.expand(str(tmp_path / "none.png")).single is not None
