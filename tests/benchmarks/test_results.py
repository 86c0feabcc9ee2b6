"""Test the published results: generated from their JSON files, and quoted exactly by the README."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")
pytest.importorskip("matplotlib", reason="the paper's figures are drawn with matplotlib")

from benchmarks.paper import claims, report
from benchmarks.paper.command import EXPERIMENTS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
STORED = {
    module.NAME: json.loads((RESULTS / f"{module.NAME}.json").read_text()) for module in EXPERIMENTS
}
CLAIMS: dict[str, dict[str, Any]] = json.loads((RESULTS / "claims.json").read_text())


def test_the_readme_quotes_the_generated_block_exactly() -> None:
    text = (ROOT / "README.md").read_text()
    begin, end = text.index(claims.BEGIN), text.index(claims.END) + len(claims.END)
    assert text[begin:end] + "\n" == (RESULTS / report.SUMMARY).read_text()


def test_the_block_is_generated_from_the_claims() -> None:
    assert (RESULTS / report.SUMMARY).read_text() == claims.block(CLAIMS)
    assert (RESULTS / "README.md").read_text() == report.overview(EXPERIMENTS, STORED)


def test_no_two_files_differ_only_in_case() -> None:
    names = [file.name.lower() for file in RESULTS.iterdir()]
    assert len(names) == len(set(names))


def test_claims_are_the_experiments_results() -> None:
    assert claims.collect(STORED) == CLAIMS
    for claim in CLAIMS.values():
        stored = json.loads((RESULTS / claim["file"]).read_text())
        assert claims.look_up(stored, claim["at"]) == claim["value"]


def test_a_block_for_fixed_numbers() -> None:
    rank = {"least_ratio": 2.46, "largest_ratio": 4.8, "published": 5.0}
    cups = {"photograph": "cups", "sigma": 8, "vertices": 1234, "ms": 43.4}
    stored = {
        "lowrank": {"results": rank},
        "layer": {"results": {"ratio": 1.0}},
        "speed": {"results": {"photographs": [cups | {"opencv_ms": 581, "ratio": 13.37}]}},
    }
    made = claims.collect(stored)
    assert made["lowrank[least_ratio]"] == {
        **{"value": 2.46, "file": "lowrank.json"},
        "at": ["results", "least_ratio"],
    }
    # the line of the backward pass is left out: its largest ratio is missing
    assert claims.block(made).splitlines() == [
        "<!-- results -->",
        "| | bilateral | compared with |",
        "| --- | --- | --- |",
        "| low rank (supplement) | 2.5 to 4.8 times as fast | the paper: about 5 |",
        "",
        "| photograph | sigma | vertices | bilateral, ms | OpenCV, ms | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| cups | 8 | 1,234 | 43 | 581 | 13.4 |",
        "<!-- /results -->",
    ]


@pytest.mark.parametrize("module", EXPERIMENTS, ids=lambda module: module.NAME)
def test_pages_are_generated_from_their_json(module: Any) -> None:
    text = (RESULTS / f"{module.NAME}.md").read_text()
    assert text == report.page(module, STORED[module.NAME])
    figures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert all((RESULTS / figure).exists() for figure in figures)


def test_results_are_of_a_whole_run() -> None:
    assert not any(stored["about"]["quick"] for stored in STORED.values())


def test_nothing_tells_where_it_was_made() -> None:
    for file in sorted(RESULTS.iterdir()):
        if file.suffix in (".md", ".json", ".svg"):
            text = file.read_text()
            folders = r"(?<![\w.:/])/(home|tmp|root|work|usr|var|mnt|data)\b"
            assert not re.search(folders, text), file
            assert socket.gethostname() not in text, file
