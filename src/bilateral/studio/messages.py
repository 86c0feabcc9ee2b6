"""Binary messages between page and server: a JSON header, then bytes.

The first four bytes are the length of the header, little-endian. The header is a JSON object with
the field ``kind``. The rest is the payload: a file, or pixels (R, G, B, A).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_LENGTH_BYTES = 4
_MAX_HEADER = 65536


class MessageError(Exception):
    """The bytes are no message."""


@dataclass(frozen=True)
class Message:
    """A decoded message."""

    kind: str
    fields: dict[str, Any]
    payload: memoryview

    def integer(self, name: str, low: int = 0, high: int = 2**53) -> int:
        """Return a field that must be an integer from `low` to `high`."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise MessageError(f"{name}: expected an integer from {low} to {high}, got {value!r}.")
        return value

    def text(self, name: str, allowed: tuple[str, ...] = ()) -> str:
        """Return a field that must be a text, one of `allowed` if that is given."""
        value = self.fields.get(name)
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise MessageError(f"{name}: expected {allowed or 'a text'}, got {str(value)[:40]!r}.")
        return value


def pack(kind: str, payload: bytes | memoryview = b"", **fields: Any) -> bytes:
    """Return the bytes of a message."""
    header = json.dumps({"kind": kind, **fields}).encode()
    return b"".join([len(header).to_bytes(_LENGTH_BYTES, "little"), header, payload])


def unpack(data: bytes) -> Message:
    """Return the message in some bytes."""
    size = int.from_bytes(data[:_LENGTH_BYTES], "little")
    end = _LENGTH_BYTES + size
    if len(data) < end or not 2 <= size <= _MAX_HEADER:
        raise MessageError("The header is cut or too long.")
    try:
        fields = json.loads(data[_LENGTH_BYTES:end])
    except (ValueError, RecursionError):
        raise MessageError("The header is no JSON.") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        raise MessageError("The header has no kind.")
    return Message(fields.pop("kind"), fields, memoryview(data)[end:])
