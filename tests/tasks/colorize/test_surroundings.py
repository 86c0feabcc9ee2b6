"""Isolated vertices: their pixels get the colours around them, not those of far strokes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bilateral import color
from bilateral.tasks import Colorizer, colorize
from bilateral.tasks.colorize.surroundings import fill_from_window
from support.examples import examples

YELLOW, NAVY, GREEN = (230, 200, 90), (40, 50, 110), (90, 170, 80)


def chroma(rgb, highest=255.0):
    return color.chroma(np.asarray(rgb), highest)


@pytest.fixture
def bench():
    """A bright half with a yellow stroke, a dark half with a navy one."""
    gray = np.full((80, 120), 200, np.uint8)
    gray[:, 80:] = 52
    marked = np.stack([gray] * 3, axis=2)
    marked[60:64, 5:40], marked[10:14, 90:110] = YELLOW, NAVY
    return gray, marked


@pytest.mark.parametrize("sigma_xy", [None, 10])
def test_a_speck_that_no_stroke_reaches_gets_the_colour_around_it(bench, sigma_xy):
    gray, marked = bench
    gray[30:32, 25:27] = marked[30:32, 25:27] = 120  # alone in its cells, nearer to navy in luma
    x = chroma(colorize(gray, marked, sigma_xy=sigma_xy))
    assert_allclose(x[28:34, 23:29], np.broadcast_to(chroma(YELLOW), (6, 6, 2)), atol=1.5)


def test_a_speck_beside_another_object_gets_the_colour_around_it(bench):
    gray, marked = bench
    gray[35, 74] = marked[35, 74] = 52  # the luma of navy: the grid connects it with navy
    x = chroma(colorize(gray, marked, sigma_xy=10))
    assert x[35, 74] @ chroma(YELLOW) > 0
    assert x[35, 74] @ chroma(NAVY) < 0
    assert_allclose(x[35, 70], chroma(YELLOW), atol=1.5)
    assert_allclose(x[35, 84], chroma(NAVY), atol=1.5)


@pytest.mark.parametrize("step", [2, 3])
def test_dots_along_an_edge_do_not_get_the_colour_of_a_far_object(step):
    # Each cell has several dots, so that their vertices lead to the object of the same luma.
    gray = np.full((80, 120), 175, np.uint8)
    gray[:, 60:] = 125
    gray[60:, 40:80] = gray[4:60:step, 60] = 150
    marked = np.stack([gray] * 3, axis=2)
    ochre, violet, green = (190, 170, 110), (120, 125, 180), (110, 180, 100)
    marked[10:14, 5:40], marked[10:14, 80:110], marked[66:72, 45:75] = ochre, violet, green
    x = chroma(colorize(gray, marked, sigma_xy=10))
    assert (np.linalg.norm(x[4:48:step, 60] - chroma(green), axis=1) > 40).all()
    assert_allclose(x[75, 60], chroma(green), atol=1.5)


def test_a_speck_with_a_stroke_keeps_the_colour_of_the_stroke(bench):
    gray, marked = bench
    gray[30:32, 25:27] = 130
    layer = np.dstack([marked, np.uint8(255) * (marked != gray[..., np.newaxis]).any(axis=2)])
    layer[30:32, 25:27] = (*GREEN, 255)
    x = chroma(colorize(gray, layer))
    assert_allclose(x[30, 25], chroma(GREEN), atol=3)
    assert_allclose(x[30, 20], chroma(YELLOW), atol=1.5)


def test_a_large_part_without_strokes_keeps_the_solution(bench):
    gray, marked = bench
    gray[10:50, 10:50] = marked[10:50, 10:50] = 120
    x = chroma(colorize(gray, marked))[10:50, 10:50]
    # one value, between the colours of the strokes
    assert_allclose(x, np.broadcast_to(x[20, 20], x.shape), atol=1.5)
    assert np.linalg.norm(x[20, 20] - chroma(YELLOW)) > 20


def test_every_stroke_recolors_the_specks_anew(bench):
    gray, marked = bench
    gray[30:32, 25:27] = marked[30:32, 25:27] = 120
    painter = Colorizer(gray)
    painter.colorize(marked)
    marked[60:64, 5:40] = GREEN
    again = painter.colorize(marked)
    assert_allclose(again.astype(int), colorize(gray, marked), atol=1)
    assert_allclose(chroma(again)[30, 25], chroma(GREEN), atol=3)


@examples(40)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 24), st.integers(1, 24)),
    st.sampled_from([2.0, 6.0, 40.0]),
)
def test_no_chroma_is_outside_the_range_of_the_strokes(seed, shape, sigma_xy):
    rng = np.random.default_rng(seed)
    gray = rng.choice([0.4, 0.45, 0.5, 0.6], shape)  # every stroke's chroma fits these
    strokes = gray[..., np.newaxis] + rng.uniform(-0.1, 0.1, (*shape, 3))
    mask = rng.random(shape) < 0.1
    mask.flat[rng.integers(mask.size)] = True
    x = chroma(colorize(gray, strokes, mask, sigma_xy=sigma_xy), 1.0)
    painted = chroma(strokes, 1.0)[mask]
    assert (x >= painted.min(axis=0) - 0.02).all()
    assert (x <= painted.max(axis=0) + 0.02).all()


def slowly_filled(values, unknown, luma):
    """The same in loops: one round after another, from the pixels of earlier rounds.

    The first round is for pixels with similar known ones.
    """
    values, known = values.reshape(luma.shape).copy(), ~unknown.reshape(luma.shape)
    height, width = luma.shape
    least = 1.0
    while not known.all():
        before, filled = known.copy(), values.copy()
        for i, j in np.argwhere(~before):
            total = mass = 0
            for y, x in np.ndindex(5, 5):
                if (y, x) in ((0, 0), (0, 4), (4, 0), (4, 4)):
                    continue
                # The border is replicated.
                at = (min(max(i + y - 2, 0), height - 1), min(max(j + x - 2, 0), width - 1))
                weight = before[at] * np.exp(-abs(luma[at] - luma[i, j]))
                total, mass = total + weight * values[at], mass + weight
            if mass > least:
                filled[i, j], known[i, j] = total / mass, True
        values, least = filled, 0.0
    return values.reshape(-1)


@examples(40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.floats(0, 1))
def test_filling_agrees_with_loops(seed, height, width, fraction):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=height * width) + 1j * rng.normal(size=height * width)
    luma = rng.uniform(0, 8, (height, width))
    unknown = rng.random(height * width) < fraction
    unknown[rng.integers(unknown.size)] = False
    expected = slowly_filled(values, unknown, luma)
    fill_from_window(values, np.flatnonzero(unknown), luma)
    assert_allclose(values, expected, atol=1e-12)
    assert_array_equal(values[~unknown], expected[~unknown])


def test_filling_starts_at_similar_pixels():
    luma = np.array([[0.0, 9.0, 8.0, 8.0, 8.0, 8.0]])
    values = np.array([5.0, 0, 0, 0, 1, 1], complex)
    # The only known pixel near the first of these is one beyond an edge.
    fill_from_window(values, np.array([1, 2, 3]), luma)
    assert_allclose(values[1:], 1, atol=0.01)


def test_luma_far_above_white_ends():
    gray = np.full((20, 20), 1e30)
    gray[:, 10:], gray[5, 5] = 0.5, 1e9
    mask = np.zeros(gray.shape, bool)
    mask[12, 12] = True
    strokes = np.broadcast_to((0.9, 0.5, 0.2), (20, 20, 3))
    x = colorize(gray, strokes, mask, reference_max=1.0)
    assert np.isfinite(x).all()
