"""Help, version, information and completion."""

import os
import re
import sys

import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

import bilateral
from support import scenes_on_disk as disk
from support.command import Main


def test_info(call: Main) -> None:
    code, out, err = call("info")
    assert (code, err) == (0, "")
    assert f"bilateral {bilateral.__version__}" in out
    assert ".exr" in out
    code, out, err = call("info", "--json")
    assert (code, err) == (0, "")
    import json

    found = json.loads(out)
    assert found["threads"] == bilateral.get_num_threads()
    assert found["formats"]["PNG"] is True


def test_info_warms_up_only_where_kernels_can_run(call: Main) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU, whose kernels would be compiled")
    code, out, err = call("info", "--warm-up")
    assert (code, out) == (1, "")
    assert "no CUDA device" in err
    assert "capability" in err


COMMANDS = (
    "solve",
    "depth",
    "complete",
    "superres",
    "stereo",
    "align",
    "defocus",
    "colorize",
    "cut",
    "segment",
    "demo",
    "studio",
    "info",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, call: Main) -> None:
    code, out, err = call(command, "--help")
    assert (code, err) == (0, "")
    assert f"bilateral {command}" in " ".join(out.split("Usage:")[1].split("\n", 1)[1].split())


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("demo", "info", "studio")]
)
def test_commands_on_files_pair_them(command: str, call: Main) -> None:
    _, out, _ = call(command, "--help")
    assert re.search(r"^  --pair RULE\|FILE ", out, re.MULTILINE)
    assert "-v, --verbose" in out


def test_help_names_commands_and_exit_codes(call: Main) -> None:
    code, out, _ = call("--help")
    assert code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", out, re.MULTILINE)
    assert "130 interrupted" in out
    code, out, err = call()
    assert code == 2
    assert "Usage" in out + err


def test_version(call: Main) -> None:
    assert call("--version") == (0, f"bilateral {bilateral.__version__}\n", "")


def test_starting_imports_no_codec() -> None:
    code = (
        "import sys; from bilateral.cli.main import main; main(['depth', '--help']);"
        "late = {'rich', 'PIL', 'imagecodecs', 'tifffile', 'OpenEXR', 'skimage', 'torch'};"
        "late |= {'av', 'dask'};"
        "sys.exit(' '.join(late & sys.modules.keys()) or 0)"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["su"], "superres"), (["depth", "--pa"], "--pair"), (["depth", "--pair", "s"], "sorted")],
)
def test_completion(words: list[str], expected: str) -> None:
    environment = {
        **os.environ,
        "_BILATERAL_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["bilateral", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = disk.run(env=environment, text=True)
    assert expected in done.stdout.split()
