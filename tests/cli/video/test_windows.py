"""Windows over a stream: each frame is kept once, with context around it."""

from hypothesis import given
from hypothesis import strategies as st

from bilateral.cli.video.windows import Window


@given(count=st.integers(0, 60), margin=st.integers(1, 4), inner=st.integers(1, 6))
def test_every_frame_is_kept_once_with_its_context(count: int, margin: int, inner: int) -> None:
    size = Window(inner + 2 * margin, margin)
    kept: list[int] = []
    for window, part in size.over(range(count)):
        assert len(window) <= size.length
        assert window == list(range(window[0], window[0] + len(window)))
        for frame in window[part]:
            around = range(max(0, frame - margin), min(count, frame + margin + 1))
            assert set(around) <= set(window)
        kept += window[part]
    assert kept == list(range(count))
