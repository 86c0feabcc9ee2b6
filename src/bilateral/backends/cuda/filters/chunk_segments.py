"""Locate the chunks of lines, and store, combine and apply their segments.

Segments are stored as (planes, chunks, 3, lines): A, B and c of each line, where B is used with
masses only.
"""

import triton
import triton.language as tl

from bilateral.backends.cuda.filters.recursion import (
    WEIGHED,
    compose,
    compose_masses,
    compose_masses_reversed,
    compose_reversed,
)


@triton.jit
def locate_chunk(
    length,
    lines,
    along,
    beside,
    chunks,
    strips,
    REVERSE: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    """Locate the pixels of a program: CHUNK along the lines, STRIP lines.

    Returns the plane; the chunk; the lines, (STRIP,); the pixels along a line, (CHUNK, 1), in the
    order of the pass; their places in a plane and which of them exist, (CHUNK, STRIP) each.
    """
    program = tl.program_id(0)
    strip, rest = program % strips, program // strips
    order = CHUNK - 1 - tl.arange(0, CHUNK) if REVERSE else tl.arange(0, CHUNK)
    i = ((rest % chunks) * CHUNK + order)[:, None]
    j = strip * STRIP + tl.arange(0, STRIP)
    place = i * along + j[None, :] * beside
    return rest // chunks, rest % chunks, j, i, place, (i < length) & (j < lines)[None, :]


@triton.jit
def store_segment(
    segments,
    plane,
    chunk,
    chunks,
    lines,
    j,
    a,
    kept,
    e,
    REVERSE: tl.constexpr,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Compose the segments (a, kept, e) of all pixels of a chunk, and store the result."""
    last = (tl.arange(0, CHUNK) == CHUNK - 1)[:, None]
    there = last & (j < lines)[None, :]
    place = last.to(tl.int32) * lines * 0 + j[None, :]
    at = segments + (plane.to(tl.int64) * chunks + chunk) * 3 * lines + place
    if KIND == WEIGHED:
        if REVERSE:
            A, B, c = tl.associative_scan((a, kept, e), 0, compose_masses_reversed)
        else:
            A, B, c = tl.associative_scan((a, kept, e), 0, compose_masses)
        tl.store(at + lines, B, mask=there)
    else:
        if REVERSE:
            A, c = tl.associative_scan((a, e), 0, compose_reversed)
        else:
            A, c = tl.associative_scan((a, e), 0, compose)
    tl.store(at, A, mask=there)
    tl.store(at + 2 * lines, c, mask=there)


@triton.jit
def find_start(
    segments,
    plane,
    chunk,
    chunks,
    lines,
    j,
    REVERSE: tl.constexpr,
    KIND: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Compose the segments of all chunks before this one; return their B and c, (1, STRIP)."""
    count = chunks - 1 - chunk if REVERSE else chunk
    last = (tl.arange(0, GROUP) == GROUP - 1)[:, None]
    B = (j * 0).to(segments.dtype.element_ty)
    c = B
    for k in range(0, count, GROUP):
        order = k + tl.arange(0, GROUP)
        there = (order < count)[:, None] & (j < lines)[None, :]
        which = chunks - 1 - order if REVERSE else order
        place = which[:, None] * 3 * lines + j[None, :]
        at = segments + plane.to(tl.int64) * chunks * 3 * lines + place
        A2 = tl.load(at, mask=there, other=1)
        c2 = tl.load(at + 2 * lines, mask=there, other=0)
        if KIND == WEIGHED:
            B2 = tl.load(at + lines, mask=there, other=0)
            A2, B2, c2 = tl.associative_scan((A2, B2, c2), 0, compose_masses)
            A2 = tl.sum(tl.where(last, A2, 0), 0)
            B2 = tl.sum(tl.where(last, B2, 0), 0)
            c2 = tl.sum(tl.where(last, c2, 0), 0)
            _A, B, c = compose_masses(A2, B, c, A2, B2, c2)
        else:
            A2, c2 = tl.associative_scan((A2, c2), 0, compose)
            c = tl.sum(tl.where(last, A2, 0), 0) * c + tl.sum(tl.where(last, c2, 0), 0)
    return B[None, :], c[None, :]


@triton.jit
def scan_chunk(B1, c1, a, kept, e, KIND: tl.constexpr, CHUNK: tl.constexpr):
    """Return the masses and values of all pixels of a chunk that starts from B1 and c1."""
    first = (tl.arange(0, CHUNK) == 0)[:, None]
    if KIND == WEIGHED:
        _A, B, c = compose_masses(a, B1, c1, a, kept, e)
        _A, B, c = tl.associative_scan(
            (a, tl.where(first, B, kept), tl.where(first, c, e)), 0, compose_masses
        )
    else:
        _A, c = tl.associative_scan((a, tl.where(first, a * c1 + e, e)), 0, compose)
        B = kept
    return B, c
