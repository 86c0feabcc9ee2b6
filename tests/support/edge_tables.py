"""Convert the device's packed edges from and to tables (2 d, vertices), -1 for none."""

import torch

from bilateral.backends.cuda.grid.edges import BLOCK, Edges, pack_edges


def packed(table: torch.Tensor, total: torch.Tensor) -> Edges:
    """Pack a table; the vertices from `total`, (1,), on hold arbitrary values."""
    directions, room = table.shape
    blocks = torch.full((directions, -(-room // BLOCK) * BLOCK), 7, dtype=torch.int32)
    blocks = blocks.to(table.device)
    blocks[:, :room] = table
    blocks = blocks.view(directions, -1, BLOCK).transpose(0, 1).contiguous()
    return pack_edges(blocks, total, room)


def table(edges: Edges) -> torch.Tensor:
    """Return the neighbours of each vertex, one row per direction."""
    directions, words = edges.directions, edges.words.cpu().long()
    bits = (words[None, :] >> torch.arange(directions)[:, None]) & 1
    block = torch.arange(edges.room) // BLOCK * (BLOCK * directions)
    at = block + (words >> directions) + bits.cumsum(0) - bits
    to = edges.to.cpu().flatten()[torch.where(bits > 0, at, 0)]
    return torch.where(bits > 0, to, -1).to(edges.to.device)
