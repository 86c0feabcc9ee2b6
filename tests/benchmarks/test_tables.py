"""Test the benchmarks' clocks and tables on fixed numbers."""

import itertools
import json
from typing import Any

import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from benchmarks.common import timing
from benchmarks.common.tables import (
    OTHERS,
    as_json,
    at_least,
    at_most,
    behind,
    plural,
    table,
    text_table,
)
from benchmarks.common.timing import Timing, geometric_mean, in_turns
from benchmarks.speed import report
from benchmarks.speed.compare import summary
from benchmarks.speed.stages import STAGES


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


def speed_case(photo: str, ours: float, opencv: float | None) -> dict[str, Any]:
    def parts(whole: float) -> dict[str, Timing]:
        stages = {stage: Timing(whole / 10, whole / 10, whole / 10, 7) for stage in STAGES}
        return {**stages, "whole": Timing(whole, whole, whole, 7)}

    return {
        "photo": photo,
        "sigma": 8,
        "vertices": 306271,
        "other_work": 0.0,
        "ours": {1: parts(2 * ours), 2: parts(ours)},
        "error": 0.0154,
        "opencv": None if opencv is None else Timing(opencv, opencv, opencv, 7),
        "opencv_error": 0.0167,
        "ratio": None if opencv is None else opencv / ours,
    }


def test_the_report_on_speed_for_fixed_times() -> None:
    cases = [speed_case("cups", 0.05, 0.45), speed_case("path", 0.1, 0.4)]
    assert summary(cases) == {"geometric_mean": pytest.approx(6), "minimum": pytest.approx(4)}
    assert summary([speed_case("cups", 0.05, None)]) is None
    settings = {"threads": (1, 2), "noise": 0.1}
    results = {"cases": cases, "summary": summary(cases), "settings": settings}
    text = report._against_opencv(results)
    ours = "| cups       |     8 |  306,271 |    50.0 (50.0 .. 50.0) "
    assert f"{ours}| 450.0 (450.0 .. 450.0) |   9.0 |" in text
    assert "geometric mean: 6.00 (target at least 10.00: MISSED)" in text
    assert "minimum: 4.00 (target at least 6.00: MISSED)" in text
    stages = report._stages(results).splitlines()
    # seven stages of 5 ms, the rest of the 50 ms, and the whole
    assert stages[-3].split("|")[2:-1] == [
        *("       2 ", " 5.00 ", "    5.00 ", "          5.00 ", "  5.00 ", "  5.00 "),
        *(" 5.00 ", "  5.00 ", " 15.0 ", "  50.0 "),
    ]
    assert report._threads(results).splitlines()[-1].split()[-2] == "2.00"
