"""The published results: generated only, consistent, and all that the README claims."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")
pytest.importorskip("matplotlib", reason="the paper's figures are drawn with matplotlib")

from benchmarks.paper import claims, report
from benchmarks.paper.__main__ import EXPERIMENTS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
STORED = {
    module.NAME: json.loads((RESULTS / f"{module.NAME}.json").read_text())
    for module in EXPERIMENTS
    if (RESULTS / f"{module.NAME}.json").exists()
}
CLAIMS: dict[str, dict[str, Any]] = json.loads((RESULTS / "claims.json").read_text())
NAMES = re.compile(
    r"`[^`]*`|\]\([^)]*\)|(Table|Figure|[Ss]ection|Eq\.) [\d.]+|(et al\.|in) (19|20)\d\d"
)
NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)")


def numbers(text: str) -> list[str]:
    """Those that stand by themselves: not x16, not 4.6.0, not Table 1, not what is in code."""
    return NUMBER.findall(NAMES.sub("", text))


def claimed(number: str) -> bool:
    """Whether a claim rounds to a number as it is written."""
    plain = number.replace(",", "")
    digits = len(plain.partition(".")[2])
    return any(f"{claim['value']:.{digits}f}" == plain for claim in CLAIMS.values())


def block(text: str) -> str | None:
    """What the README says about results, if it has marked that."""
    found = re.search(f"{re.escape(claims.BEGIN)}(.*?){re.escape(claims.END)}", text, re.DOTALL)
    return None if found is None else found[1]


@pytest.mark.parametrize("file", ["README.md", "docs/results/readme.md"])
def test_every_number_in_the_block_of_results_is_in_the_results(file: str) -> None:
    text = block((ROOT / file).read_text())
    if text is None:
        pytest.skip(f"{file} has no block of results, {claims.BEGIN} ... {claims.END}")
    found = numbers(text)
    assert found
    assert [number for number in found if not claimed(number)] == []


def test_claims_are_what_the_experiments_found() -> None:
    assert claims.collect(STORED) == CLAIMS
    for claim in CLAIMS.values():
        stored = json.loads((RESULTS / claim["file"]).read_text())
        assert claims.look_up(stored, claim["at"]) == claim["value"]


@pytest.mark.parametrize("module", EXPERIMENTS, ids=lambda module: module.NAME)
def test_pages_are_generated_from_their_json(module: Any) -> None:
    if module.NAME not in STORED:
        pytest.skip(f"{module.NAME} has not been run")
    assert (RESULTS / f"{module.NAME}.md").read_text() == report.page(module, STORED[module.NAME])
    figures = re.findall(r"!\[.*?\]\((.*?)\)", (RESULTS / f"{module.NAME}.md").read_text())
    assert all((RESULTS / figure).exists() for figure in figures)


def test_the_index_and_the_block_are_generated() -> None:
    assert (RESULTS / "README.md").read_text() == report.overview(EXPERIMENTS, STORED)
    assert (RESULTS / "readme.md").read_text() == claims.block(CLAIMS)


def test_results_are_of_a_whole_run() -> None:
    assert STORED
    assert not any(stored["about"]["quick"] for stored in STORED.values())


def test_nothing_tells_where_it_was_made() -> None:
    for file in sorted(RESULTS.iterdir()):
        if file.suffix in (".md", ".json", ".svg"):
            text = file.read_text()
            assert not re.search(r"(?<![\w.:/])/(home|tmp|root|work|usr|var|mnt|data)\b", text), (
                file
            )
            assert socket.gethostname() not in text, file


def test_numbers_are_found_as_they_are_written() -> None:
    text = "4.1 megapixels, 306,271 vertices, x16, OpenCV 4.6.0, 62 % in `a[3]`, 2-fold, v7."
    assert numbers(text) == ["4.1", "306,271", "62", "2"]
    text = "Table 2 and section 5.3 by Barron et al. 2016, in 2012: 2016 ms"
    assert numbers(text) == ["2016"]
