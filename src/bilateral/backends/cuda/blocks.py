"""Index the blocks of rows and channels that the programs of a kernel work on."""

import triton
import triton.language as tl


@triton.jit
def program_rows(total, room, BLOCK: tl.constexpr):
    """Return the rows of this program, and which of them exist.

    `total` points to the number of rows. It may exceed the room, the number of rows in memory.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return i, i < tl.minimum(tl.load(total), room)


@triton.jit
def row_channels(i, mask, channels, k):
    """Return the places of channels k of rows i in a (rows, channels) tensor, and their mask."""
    mask = mask[:, None] & (k[None, :] < channels)
    return i.to(tl.int64)[:, None] * channels + k[None, :], mask
