"""Shards: every file is in exactly one part, however many there are."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral.cli.errors import UsageError
from bilateral.cli.running import shard
from support import scenes_on_disk as disk
from support.command import Main, fails
from support.scenes_on_disk import records

KEYS = st.lists(st.text("ab01/ .", max_size=6), unique=True, max_size=40)


@given(keys=KEYS, total=st.integers(1, 50), data=st.data())
def test_parts_cover_every_key_once(keys: list[str], total: int, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(keys))
    parts = [shard.Shard(i, total).select(keys) for i in range(1, total + 1)]
    assert sorted(key for part in parts for key in part) == sorted(keys)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert parts == [shard.Shard(i, total).select(shuffled) for i in range(1, total + 1)]


@given(number=st.integers(0, 30), total=st.integers(0, 30), spaces=st.sampled_from(["", " "]))
def test_reading_a_part(number: int, total: int, spaces: str) -> None:
    text = f"{number}{spaces}/{spaces}{total}"
    if 1 <= number <= total:
        assert shard.parse(text) == (number, total)
    else:
        with pytest.raises(UsageError, match="count from 1"):
            shard.parse(text)


@pytest.mark.parametrize("text", ["", "3", "3/", "/3", "a/3", "-1/3", "1/3/5", "1.5/3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a part such as 3/16"):
        shard.parse(text)


def test_shards_of_a_folder(here: Path, call: Main) -> None:
    names = disk.folders(here, 5)
    seen: list[str] = []
    for i in range(1, 4):
        code, out, err = call(
            "depth", "depths", "photos", "-o", "out", "--invalid", 0, "--json", "--shard", f"{i}/3"
        )
        assert (code, err) == (0, "")
        seen += [Path(record["input"]).stem for record in records(out)]
    assert sorted(seen) == names
    assert sorted(path.stem for path in (here / "out").iterdir()) == names
    assert call("depth", "depths", "photos", "-o", "more", "--shard", "9/9") == (0, "", "")
    outcome = call("depth", "depths", "photos", "-o", "out", "--shard", "0/3")
    fails(outcome, "--shard: expected a number from 1 to 3", code=2)
