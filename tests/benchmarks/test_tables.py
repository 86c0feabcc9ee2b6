"""Test the benchmarks' clocks and tables on fixed numbers."""

import itertools
import json
from typing import Any

import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from benchmarks.common import timing
from benchmarks.common.cells import Setting
from benchmarks.common.data import Data
from benchmarks.common.tables import (
    OTHERS,
    as_json,
    at_least,
    at_most,
    behind,
    plural,
    spread,
    table,
    text_table,
)
from benchmarks.common.timing import Timing, geometric_mean, in_turns
from benchmarks.speed import bench, report
from benchmarks.speed.cases import STAGES


def test_a_timing_is_the_median_with_quartiles() -> None:
    timing_ = Timing.of([0.005, 0.001, 0.004, 0.002, 0.003])
    assert timing_ == Timing(0.003, 0.002, 0.004, 5)
    assert f"{timing_}" == "3.00 (2.00 .. 4.00)"
    assert f"{timing_:ms}" == "3.00"
    assert f"{timing_:us}" == "3,000.0 (2,000.0 .. 4,000.0)"
    assert f"{Timing(0.0123, 0.01, 0.2, 3)}" == "12.3 (10.0 .. 200.0)"


def test_calls_are_timed_in_turns_without_the_warm_ups() -> None:
    order: list[str] = []

    def call(name: str, seconds: list[float]) -> Any:
        def run() -> float:
            order.append(name)
            return seconds[order.count(name) - 1]

        return run

    calls = {"ours": call("ours", [9, 1, 3]), "theirs": call("theirs", [9, 6, 8])}
    times = in_turns(calls, repeats=2, warm_ups=1)
    assert order == ["ours", "theirs"] * 3
    assert times["ours"].median == 2
    assert times["theirs"].median / times["ours"].median == 3.5
    assert times["ours"].repeats == 2


def test_the_clock_gives_the_difference_of_two_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = itertools.count(10.0, 0.5)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(readings))
    assert timing.clock(divmod, 7, 3) == (0.5, (2, 1))
    assert timing.stopwatch(divmod, 7, 3)() == 0.5


def test_geometric_mean() -> None:
    assert geometric_mean([2, 8]) == pytest.approx(4)


def test_a_table_aligns_columns_and_marks_what_is_missing() -> None:
    rows = [
        {
            "photo": "cups",
            "ours": Timing(0.0433, 0.04, 0.05, 7),
            "ratio": 13.42,
            "other_work": 0.04,
        },
        {
            "photo": "a kite",
            "ours": Timing(0.002, 0.002, 0.002, 7),
            "ratio": None,
            "other_work": None,
        },
    ]
    text = table(rows, "photograph | {photo}; ours | {ours}", "ratio | {ratio:.1f}", OTHERS)
    assert text.splitlines() == [
        "| photograph |                ours | ratio | other work |",
        "|------------|--------------------:|------:|-----------:|",
        "| cups       | 43.3 (40.0 .. 50.0) |  13.4 |        0.0 |",
        "| a kite     | 2.00 (2.00 .. 2.00) |     - |    unknown |",
    ]
    assert table([{"s": 0.0123, "ms": 4.0}], "a | {s:ms}; b | {ms:short}").endswith(
        "| 12.3 | 4.00 |"
    )
    assert text_table(("", "b"), [["aa", "1"]]).splitlines()[1:] == ["|----|--:|", "| aa | 1 |"]


def test_verdicts() -> None:
    assert at_most(1.21, 1.2) == "1.21 (target at most 1.20: MISSED)"
    assert at_most(1.2, 1.2) == "1.20 (target at most 1.20: met)"
    assert at_least(3.96, 4.0, ".1f") == "4.0 (target at least 4.0: MISSED)"
    assert behind(["slower", "larger"], "no") == "**Behind**:\n\n- slower\n- larger"
    assert behind([], "No row is behind.") == "No row is behind."
    assert (plural(1, "scene"), plural(3, "scene")) == ("1 scene", "3 scenes")


def test_json_of_timings() -> None:
    stored = json.loads(as_json({"a": Timing(2, 1, 3, 4)}))
    assert stored == {"a": {"median": 2, "low": 1, "high": 3, "repeats": 4}}


def speed_case(sigma: int, ours: float, opencv: float | None) -> dict[str, Any]:
    def parts(whole: float) -> dict[str, Timing]:
        stages = {stage: Timing(whole / 10, whole / 10, whole / 10, 7) for stage in STAGES}
        return {**stages, "whole": Timing(whole, whole, whole, 7)}

    return {
        "sigma": sigma,
        "vertices": 306271,
        "other_work": 0.0,
        "ours": {1: parts(2 * ours), 2: parts(ours)},
        "error": 0.0154,
        "opencv": None if opencv is None else Timing(opencv, opencv, opencv, 7),
        "opencv_error": 0.0167,
        "ratio": None if opencv is None else opencv / ours,
    }


def test_the_report_on_speed_for_fixed_times() -> None:
    cases = [speed_case(8, 0.05, 0.45), speed_case(16, 0.1, 0.4)]
    parts = {"construction": 200.0, "optimization": 250.0, "total": 450.0}
    value = {
        "megapixels": 4.1,
        "sigmas": {str(case["sigma"]): case for case in cases},
        "converged_ms": 60.0,
        "device": None,
        "opencv": {"1": parts, "2": parts},
    }
    results = bench.summary({"cups": value, "import": {}}, _setting("python"))
    assert results["ratio"] == {"geometric_mean": pytest.approx(6), "minimum": pytest.approx(4)}
    text = bench.as_text(results)
    ours = "| cups       |     8 |  306,271 |  50.0 "
    assert f"{ours}|  450.0 |   9.0 |    0.0154 |   0.0167 |" in text
    assert "| bilateral, 2 threads        |       20 ± 0 |       15 ± 0 |    50 ± 0 |" in text
    assert "| OpenCV, 1 thread            |      200 ± 0 |      250 ± 0 |   450 ± 0 |" in text
    assert "geometric mean 6.0, least 4.0" in text
    alone = {"cups": value | {"sigmas": {"8": speed_case(8, 0.05, None)}}}
    assert bench.summary(alone, _setting(None))["ratio"] is None

    rows: list[dict[str, Any]] = [{"photo": "cups", **case} for case in cases]
    stages = report._stages(rows).splitlines()
    # seven stages of 5 ms, the rest of the 50 ms, and the whole
    assert [cell.strip() for cell in stages[3].split("|")[2:-1]] == [
        *("2", *["5.00"] * 7, "15.0", "50.0 (50.0 .. 50.0)")
    ]
    assert stages[4].split("|")[-2].strip() == "450.0 (450.0 .. 450.0)"
    assert report._threads(rows)[0].splitlines()[-1].split()[-2] == "2.00"
    race = {"ratio": 3.0, "limit": 4.0}
    growth = {"ratio": 1.3, "sizes": [{"megapixels": 16.4, "factor": 4.0}]}
    memory, timing = {"bytes_per_pixel": 39.0}, Timing(0.05, 0.05, 0.05, 3)
    targets = report._targets(rows, [race], [memory], growth, timing)
    assert "geometric mean: 6.00 (target at least 10.00: MISSED)" in targets
    assert "minimum: 4.00 (target at least 6.00: MISSED)" in targets
    assert "0.75 (target at least 1.00: MISSED)" in targets
    assert "bytes per pixel: 39.0 (target at most 40.0: met)" in targets
    assert "0.30 (target at most 0.20: MISSED)" in targets
    assert "import: 0.05 (target at most 0.10: met)" in targets


def _setting(python: str | None) -> Setting:
    return Setting(Data(None), True, 1, python, {}, (1, 2))


def test_all_timings_among_values_are_listed() -> None:
    timing = Timing(0.003, 0.002, 0.004, 5)
    values = {"a": {"ours": timing, "n": 1}, "b": [{"peer": timing}], "c": None}
    assert spread(values).splitlines()[4:] == [
        "| a    | ours | 3.00 (2.00 .. 4.00) |",
        "| b, 0 | peer | 3.00 (2.00 .. 4.00) |",
    ]
