"""Real Dask clusters: the same results, messages and exit codes as threads; killed workers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("distributed", reason="clusters need distributed")

from support import cluster
from support import scenes_on_disk as disk
from support.command import Main, fails
from support.scenes_on_disk import records

pytestmark = pytest.mark.cluster

RUN = ("depth", "depths", "photos", "-o")


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def outcomes(done: Any) -> tuple[int, list[str], dict[str, dict[str, Any]]]:
    """Return the exit code, the messages and the records without their times."""
    kept = {
        record["input"]: {name: record[name] for name in record.keys() - {"seconds", "output"}}
        for record in records(done.stdout)
    }
    return done.returncode, done.stderr.splitlines(), kept


@pytest.mark.smoke
def test_a_local_cluster_does_the_same_as_threads(tmp_path: Path) -> None:
    names = disk.folders(tmp_path, 6)
    (tmp_path / "depths" / f"{names[1]}.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (tmp_path / "photos" / f"{names[2]}.jpg").unlink()
    options = ("--json", "--preview", "--truth", "truths", "--report")
    each = [
        disk.run(*RUN, way, *options, f"{way}.html", *more, cwd=tmp_path, text=True)
        for way, more in {"threads": (), "cluster": ("--workers", 2)}.items()
    ]
    assert outcomes(each[1]) == outcomes(each[0])
    assert each[0].returncode == 1
    assert len(each[0].stderr.splitlines()) == 3  # two failures, and zeros in the maps
    assert results(tmp_path / "cluster") == results(tmp_path / "threads")
    pages = [(tmp_path / f"{way}.html").read_text() for way in ("threads", "cluster")]
    assert pages[0].count("<h2>") == pages[1].count("<h2>") == 6
    again = disk.run(
        *RUN, "cluster", "--json", "--skip-existing", "--workers", 2, cwd=tmp_path, text=True
    )
    status = {Path(record["input"]).stem: record["status"] for record in records(again.stdout)}
    expected = ["skipped", "failed", "failed", "skipped", "skipped", "skipped"]
    assert [status[name] for name in names] == expected
    refused = disk.run(*RUN, "cluster", "--workers", 2, "-q", cwd=tmp_path, text=True)
    assert refused.returncode == 1
    assert "exists already. Replace it with --force. (4 files" in refused.stderr


def start(folder: Path, *options: object) -> "subprocess.Popen[str]":
    command = [*disk.COMMAND, *map(str, (*RUN, *options))]
    return subprocess.Popen(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("kills", [pytest.param(2, marks=pytest.mark.smoke), 6])
def test_killed_workers(kills: int, tmp_path: Path) -> None:
    """Every result is complete and written once, though workers die while they work."""
    count = 10 * kills
    names = disk.folders(tmp_path, count, (120, 160))
    assert disk.run(*RUN, "whole", "--invalid", 0, cwd=tmp_path).returncode == 0
    options = ("--invalid", 0, "--workers", 3, "--json", "--manifest", "m.jsonl")
    process = start(tmp_path, "out", *options)
    victims = {cluster.kill_when(process, tmp_path / "out", 8 * i) for i in range(kills)}
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert len(victims) == kills
    done = [record["input"] for record in records(out) if record["status"] == "done"]
    assert sorted(done) == [f"depths/{name}.png" for name in names]
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert sorted(line["file"] for line in lines if line["status"] == "done") == sorted(done)
    assert len(lines) == count
    assert results(tmp_path / "out") == results(tmp_path / "whole")  # no temporary files, either


def test_a_file_that_kills_every_worker_fails(tmp_path: Path) -> None:
    """A file whose job always dies is reported; the others are done."""
    names = disk.folders(tmp_path, 6)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os\n"
        "from bilateral.cli.files.inputs import Reader\n"
        "real = Reader.array\n"
        "def array(self, path, **more):\n"
        f"    if path.stem == {names[2]!r}:\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return real(self, path, **more)\n"
        "Reader.array = array\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    options = ("--invalid", 0, "--workers", 2, "--manifest", "m.jsonl")
    done = disk.run(*RUN, "out", *options, cwd=tmp_path, text=True, env=environment)
    assert done.returncode == 1
    fails((1, "", done.stderr), f"depths/{names[2]}.png: 4 workers died while they processed it")
    assert sorted(cluster.finished(tmp_path / "out")) == [
        f"{name}.png" for name in names if name != names[2]
    ]
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    status = {Path(line["file"]).stem: line["status"] for line in lines}
    assert status == {name: "failed" if name == names[2] else "done" for name in names}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting(number: int, code: int, tmp_path: Path) -> None:
    disk.folders(tmp_path, 40, (240, 320))
    process = start(tmp_path, "out", "--invalid", "0", "--workers", "2")
    while len(cluster.finished(tmp_path / "out")) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    workers = cluster.local_workers(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert len(err.splitlines()) == 1
    assert len(workers) == 2
    deadline = time.monotonic() + 20
    while any(worker.is_running() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_running_scheduler(tmp_path: Path) -> None:
    """Workers started in another folder find the files; the messages have the given names."""
    names = disk.folders(tmp_path / "data", 5)
    (tmp_path / "data" / "depths" / f"{names[1]}.png").write_bytes(b"")
    (tmp_path / "elsewhere").mkdir()
    with cluster.scheduler(tmp_path / "elsewhere", 2) as address:
        options = ("--json", "--scheduler", address)
        done = disk.run(*RUN, "out", *options, cwd=tmp_path / "data", text=True)
    assert done.returncode == 1
    assert f"bilateral: depths/{names[1]}.png: the file is empty." in done.stderr.splitlines()
    assert f"bilateral: depths/{names[0]}.png: 0 counts as a depth in" in done.stderr
    assert str(tmp_path) not in done.stdout + done.stderr
    assert len(cluster.finished(tmp_path / "data" / "out")) == 4
    assert not list((tmp_path / "data" / "out").glob(".*"))


def test_a_scheduler_that_dies(tmp_path: Path) -> None:
    disk.folders(tmp_path, 40, (240, 320))
    with cluster.scheduler(tmp_path, 1) as address:
        options = ("--invalid", "0", "--scheduler", address, "--manifest", "m.jsonl")
        process = start(tmp_path, "out", *options)
        while len(cluster.finished(tmp_path / "out")) < 3:
            assert process.poll() is None
            time.sleep(0.01)
    out, err = process.communicate(timeout=90)
    fails((process.returncode, out, err), "the connection to the scheduler was lost")
    code = disk.run(*RUN, "out", *options[:2], *options[4:], cwd=tmp_path).returncode
    assert code == 0
    assert len(cluster.finished(tmp_path / "out")) == 40


def test_workers_that_cannot_serve(here: Path, keep_num_threads: None) -> None:
    """A worker without the shared folder, or with another version, says so and writes nothing."""
    import cloudpickle

    import bilateral
    from bilateral.cli.commands import maps
    from bilateral.cli.commands.options import CommonOptions
    from bilateral.cli.running import worker
    from bilateral.cli.running.job import Job, Processor
    from bilateral.io.atomic import Tag

    common = CommonOptions(output="out.png")
    depth = maps.depth("depth.png", "photo.png", common=common)
    command = cloudpickle.dumps(Processor(depth, common))
    paths = {"depth": here / "depth.png", "reference": here / "photo.png"}
    job = Job("depth", "depth.png", here / "out.png", paths)
    tag, version, folder = Tag(), bilateral.__version__, str(here)
    unseen = worker.process(command, version, tag.text, folder, job).record
    assert unseen.status == "failed"
    assert "does not see the folder" in str(unseen.error)
    tag = Tag()
    tag.mark(here)
    other = worker.process(command, "0.0", tag.text, folder, job).record
    assert f"has bilateral {version}, expected 0.0" in str(other.error)
    assert not (here / "out.png").exists()
    assert worker.process(command, version, tag.text, folder, job).record.status == "done"
    again = worker.process(command, version, tag.text, folder, job).record
    assert again.status == "done"  # as after the death of a worker that had written its result
    (here / "out.png").write_bytes(b"theirs")
    theirs = worker.process(command, version, tag.text, folder, job).record
    assert "exists already" in str(theirs.error)
    assert (here / "out.png").read_bytes() == b"theirs"
    tag.remove([here])
    assert not list(here.glob(".*"))


def test_wrong_usage(here: Path, call: Main) -> None:
    disk.folders(here, 2)
    run = (*RUN, "out", "--workers", 2)
    fails(call(*run, "--scheduler", "x:1"), "exclude each other", code=2)
    fails(call(*run, "--jobs", 2), "--jobs", code=2)
    fails(call(*run, "--video"), "--video: expected no --workers", code=2)
    outcome = call("depth", "depth.png", "photo.png", "-o", "-", "--workers", 1)
    fails(outcome, "cannot write to stdout", code=2)


def test_nobody_answers(here: Path) -> None:
    disk.folders(here, 2)
    done = disk.run(*RUN, "out", "--scheduler", "tcp://127.0.0.1:9", cwd=here, text=True)
    fails(
        (done.returncode, "", done.stderr),
        "--scheduler: no Dask scheduler answers at tcp://127.0.0.1:9",
    )


def test_a_missing_package_is_named(here: Path) -> None:
    disk.folders(here, 2)
    code = (
        "import sys; sys.modules['distributed'] = None; from bilateral.cli.main import main;"
        "sys.exit(main())"
    )
    command = [sys.executable, "-c", code, *RUN, "out", "--workers", "2"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60)
    fails((done.returncode, "", done.stderr), 'distributed: pip install "bilateral[dask]"')
