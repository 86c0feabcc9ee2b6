"""How Hypothesis runs, and fixtures that several files share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import bilateral

# Without a GPU, Triton's kernels are interpreted. It asks once, when it is imported first.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile(
    "local",
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "ci", settings.get_profile("local"), derandomize=True, database=None, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def keep_num_threads() -> Iterator[None]:
    """Let a test call `set_num_threads` without consequences for others."""
    before = bilateral.get_num_threads()
    yield
    bilateral.set_num_threads(before)
