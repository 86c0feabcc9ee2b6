"""Images of different sizes share recordings; without a GPU, replays run in the interpreter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from support.eager_graphs import use_eager_graphs
from support.kernel_device import COMPILED

# isort: split
import torch

from bilateral.backends.cuda.grid.tiles import tile_count, tile_length
from bilateral.numerics import policy
from bilateral.torch.cuda import recording_cache, size_bucket
from bilateral.torch.cuda.recording import Recording
from bilateral.torch.cuda.size_bucket import SizeBucket, SizeHistory
from bilateral.torch.cuda.solve import Inputs, solve
from support.layers import layer_options

pytestmark = pytest.mark.interpreter
OPTIONS = (3.0, 64.0, 64.0), 1e-4, 40
interpreted = pytest.mark.skipif(COMPILED, reason="test_on_a_gpu.py makes real recordings")


@pytest.fixture
def eager_graphs(monkeypatch):
    use_eager_graphs(monkeypatch)


def inputs(seed, height, width, known=1.0, images=1, weighted=True):
    """Draw a batch; some values without a weight."""
    rng = np.random.default_rng(seed)
    reference = (rng.integers(0, 6, (images, 1, height, width)) * 45).astype(np.uint8)
    count = images * height * width
    values, weights = rng.normal(size=(count, 2)), rng.uniform(0.5, 1, (count, 1))
    weights *= rng.random((count, 1)) < known
    weights[:: height * width] = 1
    tensors = map(torch.from_numpy, (reference, values, weights))
    reference, values, weights = tensors
    return Inputs(reference, values, weights if weighted else None, 1.0)


@given(st.integers(1, 5000), st.floats(1, 64))
def test_a_tile_has_as_many_pixels_as_fit(length, sigma):
    count = tile_count(length, sigma, policy.EDGE_GUARD)
    longest = tile_length(count, sigma, policy.EDGE_GUARD)
    assert length <= longest
    assert tile_count(longest, sigma, policy.EDGE_GUARD) == count
    assert tile_count(longest + 1, sigma, policy.EDGE_GUARD) == count + 1


@given(st.integers(200, 9000), st.integers(200, 9000), st.floats(1, 32))
def test_a_bucket_has_few_pixels_more_and_as_many_bits(height, width, sigma):
    options = layer_options((sigma, 8.0, 8.0), 1e-3, 9, "pyramid")
    like = torch.empty(1, 1, 1, 1, dtype=torch.uint8).expand(1, 3, height, width)
    bucket = size_bucket.size_bucket(Inputs(like, like, None, 1.0), options)
    for length, room in ((height, bucket.height), (width, bucket.width)):
        tiles, most = (tile_count(n, sigma, policy.EDGE_GUARD) for n in (length, room))
        assert length <= room
        assert most <= tiles * 1.25 + 1
        assert (most - 1).bit_length() == (tiles - 1).bit_length()


def test_small_images_and_large_tiles_have_no_bucket():
    def of(side, sigma):
        like = torch.empty(1, 1, 1, 1, dtype=torch.uint8).expand(1, 3, side, side)
        options = layer_options((sigma, 8.0, 8.0), 1e-3, 9, "pyramid")
        return size_bucket.size_bucket(Inputs(like, like, None, 1.0), options)

    assert of(300, 8.0) is not None
    assert of(100, 8.0) is None
    assert of(300, 0.5) is None
    assert of(300, 33.0) is None


def test_sizes_vary_from_the_third_on_until_one_is_repeated():
    history = SizeHistory()
    seen = [history.add("kind", size) for size in (1, 2, 1, 2, 2, 3, 1)]
    assert seen == [False, False, False, False, False, True, True]
    assert not history.add("another", 3)
    repeats = [history.add("kind", 5) for _ in range(size_bucket._REPEATS + 2)]
    assert repeats == [True] * size_bucket._REPEATS + [False] * 2
    assert history.add("kind", 6)


@interpreted
@pytest.mark.parametrize(
    ("kind", "known", "images"),
    [
        pytest.param("pyramid", 1.0, 1, marks=pytest.mark.smoke),
        ("pyramid", 1.0, 2),
        ("multigrid", 0.2, 1),
        ("multigrid", 0.3, 2),
    ],
)
@pytest.mark.usefixtures("eager_graphs")
def test_a_solve_in_a_bucket_is_the_plain_one(kind, known, images):
    options = layer_options(*OPTIONS, kind)
    bucket = SizeBucket(6, 9)
    calls = [
        inputs(seed, height, width, known, images, weighted=weighted)
        for seed, height, width, weighted in [
            (0, 5, 8, True),
            (1, 6, 9, True),
            (2, 4, 7, True),  # what is left of the larger image must not count
            (3, 4, 7, known < 1),
            (4, 6, 5, known < 1),
        ]
    ]
    recording = Recording(calls[0], options, kind, None, bucket)
    for call in calls:
        x, outcome = recording.solve(call)
        expected, _, plain = solve(call, options)
        assert outcome.converged
        assert outcome.residuals == plain.residuals
        assert_array_equal(x, expected)


@interpreted
@pytest.mark.usefixtures("eager_graphs")
def test_values_that_are_not_finite_are_gone_with_their_image():
    options = layer_options(*OPTIONS, "pyramid")
    bad, good = inputs(0, 6, 9), inputs(1, 4, 7)
    recording = Recording(good, options, "pyramid", None, SizeBucket(6, 9))
    bad.values[-1] = np.nan
    assert recording.solve(bad) is None
    assert recording.worth_retrying
    x, _ = recording.solve(good)
    assert_array_equal(x, solve(good, options)[0])


@interpreted
@pytest.mark.usefixtures("eager_graphs")
def test_a_stream_of_sizes_shares_recordings(monkeypatch):
    monkeypatch.setattr(size_bucket, "_MIN_PIXELS", 1)
    options = layer_options(*OPTIONS, "pyramid")
    recording_cache.forget()
    sizes = [(6, 8), (5, 9), (6, 7), (5, 7), (6, 8), (6, 9)]
    served = []
    for seed, size in enumerate(sizes):
        call = inputs(seed, *size)
        found = recording_cache.solve(call, options)
        served.append(found is not None)
        if found is not None:
            assert_array_equal(found.x, solve(call, options)[0])
    assert served == [False, False, True, True, True, True]
    made = [each for each in recording_cache.recording_sets() if each.by_preconditioner]
    assert len(made) == 1
    recording_cache.forget()
