"""Divide the vertices of each image into parts, one for each program, and add up their sums.

The parts depend on the image only, and their sums are added in a fixed order: results do not depend
on the room, nor on the order in which programs run.
"""

import triton
import triton.language as tl

MAX_PROGRAMS = 512
"""Most programs of a kernel that sums: they fill a device, and their partial sums are few."""


_MIN_PADDED_IMAGES = 64


def padded_images(images: int) -> int:
    """Return the lanes for the images of a batch; small batches share compiled kernels."""
    padded: int = triton.next_power_of_2(images)
    return max(_MIN_PADDED_IMAGES, padded)


@triton.jit
def part_size(begin, end, programs):
    """Return the number of vertices per part of an image with vertices [begin, end)."""
    return (end - begin + programs - 1) // programs


@triton.jit
def part_of_image(first_vertex, image, program, programs):
    """Return the first vertex of a program's part of an image, and the vertex after its last."""
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    size = part_size(begin, end, programs)
    low = tl.minimum(begin + program * size, end)
    return low, tl.minimum(low + size, end)


@triton.jit
def sum_parts(parts, kind, image, images, programs, k, KP: tl.constexpr, PP: tl.constexpr):
    """Add up one kind of (kinds, images, programs, KP) sums over the programs of an image."""
    p = tl.arange(0, PP)
    at = ((kind * images + image) * programs + p[:, None]) * KP + k[None, :]
    return tl.sum(tl.load(parts + at, mask=(p < programs)[:, None], other=0), 0)


@triton.jit
def ratio(a, b):
    """Return a / b, or 0 where b is not positive."""
    positive = b > 0
    return tl.where(positive, a / tl.where(positive, b, 1.0), 0.0)
