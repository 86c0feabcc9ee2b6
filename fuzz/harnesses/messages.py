"""Messages between the studio's page and its server."""

from __future__ import annotations

from typing import Any

from bilateral.studio.messages import MessageError, pack, unpack
from fuzz.call import Call, Case, require
from fuzz.draw import Draw


def value(d: Draw, depth: int = 0) -> Any:
    """A value of JSON."""
    kind = d.randrange(8 if depth < 3 else 6)
    if kind == 0:
        return d.choice((None, True, False))
    if kind < 3:
        return d.randint(-(2**53), 2**53)
    if kind == 3:
        return d.gauss(0, 1e6)
    if kind < 6:
        return "".join(chr(d.randrange(1, 0xD7FF)) for _ in range(d.randrange(12)))
    if kind == 6:
        return [value(d, depth + 1) for _ in range(d.randrange(4))]
    return {f"k{i}": value(d, depth + 1) for i in range(d.randrange(4))}


def messages(d: Draw) -> Case:
    """What was packed is unpacked; other bytes raise one kind of error."""
    fields = {f"f{i}": value(d) for i in range(d.randrange(6))}
    payload = d.randbytes(d.randrange(40))
    data = yield Call(pack, "paint", payload, **fields)
    message = yield Call(unpack, data)
    same = (message.kind, message.fields, bytes(message.payload)) == ("paint", fields, payload)
    require(same, "another message", message)
    for _ in range(6):
        changed = bytearray(data)
        at = d.randrange(len(changed)) if d.chance(0.5) else d.randrange(min(12, len(changed)))
        kind = d.randrange(4)
        if kind == 0:
            changed[at] = d.randrange(256)
        elif kind == 1:
            del changed[at:]
        elif kind == 2:
            changed[at:at] = d.choice((b"[" * 2000, b'{"a":', d.randbytes(5), b"\xff", b"9" * 5000))
            changed[:4] = (len(changed) - 4).to_bytes(4, "little")
        else:
            del changed[at : at + 3]
        found = yield Call(unpack, bytes(changed), errors=(MessageError,))
        if not isinstance(found, MessageError):
            for name in found.fields:
                yield Call(found.integer, name, errors=(MessageError,))
                yield Call(found.text, name, ("a", "b"), errors=(MessageError,))
