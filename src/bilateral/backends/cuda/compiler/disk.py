"""Cache compiled kernels on disk, below the folder of Triton's cache."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import triton

from bilateral.backends.cuda.compiler.variant import Variant

_HEADER_END = b"\n"


@cache
def _sources_key() -> str:
    """Return a hash of Triton's version and of the sources of all kernels."""
    digest = hashlib.sha256(triton.__version__.encode())
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def folder() -> Path:
    """Return the folder of the binaries of this version."""
    base = os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache"
    return Path(base) / f"bilateral-{_sources_key()}"


def _digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()[:16]


def _path(variant: Variant, capability: int) -> Path:
    name = hashlib.sha256(variant.to_json().encode()).hexdigest()[:24]
    return folder() / f"sm{capability}" / f"{name}.kernel"


def exists(variant: Variant, capability: int) -> bool:
    """Whether the binary of a variant is there."""
    return _path(variant, capability).exists()


def read(variant: Variant, capability: int) -> tuple[dict[str, Any], bytes] | None:
    """Return the description and the code of a variant; None if they are not there."""
    try:
        data = _path(variant, capability).read_bytes()
    except OSError:
        return None
    header, _, code = data.partition(_HEADER_END)
    try:
        described, digest = json.loads(header)
    except (ValueError, TypeError):
        return None
    return (described, code) if digest == _digest(code) else None


def write(variant: Variant, capability: int, described: dict[str, Any], code: bytes) -> None:
    """Write a binary, completely or not at all; a cache that cannot be written is no error."""
    path = _path(variant, capability)
    data = json.dumps([described, _digest(code)]).encode() + _HEADER_END + code
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        os.replace(file.name, path)
