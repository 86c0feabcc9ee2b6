"""Messages: what was packed is unpacked, and other bytes raise one kind of error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="the studio needs starlette")

from bilateral.studio.messages import MessageError, pack, unpack

FIELDS = st.dictionaries(
    st.text().filter(lambda name: name not in ("kind", "payload")),
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.lists(st.integers()),
)


@given(st.text(), st.binary(), FIELDS)
def test_a_message_survives(kind: str, payload: bytes, fields: dict) -> None:
    message = unpack(pack(kind, payload, **fields))
    assert (message.kind, bytes(message.payload), message.fields) == (kind, payload, fields)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        unpack(data)
    except MessageError:
        return
    assert data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(4),
        b"\xff\xff\xff\xff{}",
        b"\2\0\0\0[]",
        b"\2\0\0\0{}",
        b'\x0b\0\0\0{"kind":12}',
        (100_000).to_bytes(4, "little") + b"[" * 100_000,
        (60_000).to_bytes(4, "little") + b"[" * 60_000,
    ],
)
def test_hostile_headers(data: bytes) -> None:
    with pytest.raises(MessageError):
        unpack(data)


def test_fields_are_checked() -> None:
    message = unpack(pack("paint", x=3, y=-1, flag=True, tool="cut"))
    assert message.integer("x") == 3
    assert message.text("tool", ("cut",)) == "cut"
    for name in ("y", "flag", "tool", "missing"):
        with pytest.raises(MessageError, match=f"^{name}: expected an integer"):
            message.integer(name)
    with pytest.raises(MessageError, match=r"^tool: expected"):
        message.text("tool", ("depth",))
