"""Choose which tests run and how many examples they draw; share fixtures between files.

A test without a mark is fast and always runs. The slow kinds of tests carry a mark:

- ``interpreter``: Triton kernels, which run in Triton's interpreter where there is no GPU.
- ``benchmark``: the benchmark commands from start to end.
- ``stress``: many threads, killed processes, many repetitions, exhaustive sweeps.
- ``browser``: tests that need a browser.
- ``cluster``: Dask clusters of several processes.

A few cases of each slow kind also carry the mark ``smoke``: they run with the fast tests.

- ``make test``: unmarked and ``smoke`` tests, Hypothesis profile "fast".
- ``make test-slow``: the other tests, and all property tests with the profile "full".
- ``make test-all``: both. Plain ``pytest``: every test with the profile "full".
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import bilateral

# Triton reads this variable once, on its first import.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# A shell starts background jobs with Ctrl-C ignored, and the tests of Ctrl-C would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPEATABLE = {"derandomize": True, "database": None}
settings.register_profile(
    "full",
    deadline=None,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    **(REPEATABLE if os.environ.get("CI") else {}),
)
settings.register_profile("fast", settings.get_profile("full"), max_examples=20, **REPEATABLE)
settings.load_profile("full")


@pytest.fixture
def keep_num_threads() -> Iterator[None]:
    """Restore the number of threads after a test that calls `set_num_threads`."""
    before = bilateral.get_num_threads()
    yield
    bilateral.set_num_threads(before)
