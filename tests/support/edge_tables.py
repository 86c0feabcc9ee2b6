"""Edges of grids as tables (2 d, vertices), -1 for none, as they are packed on a device."""

import torch
from bilateral.backends.cuda.grid.edges import BLOCK, Edges, pack_edges


def packed(table: torch.Tensor, total: torch.Tensor) -> Edges:
    """The edges of a table, of which the vertices from `total` on, (1,), are nonsense."""
    directions, room = table.shape
    blocks = torch.full((directions, -(-room // BLOCK) * BLOCK), 7, dtype=torch.int32)
    blocks = blocks.to(table.device)
    blocks[:, :room] = table
    blocks = blocks.view(directions, -1, BLOCK).transpose(0, 1).contiguous()
    return pack_edges(blocks, total, room)


def table(edges: Edges) -> torch.Tensor:
    """Where each vertex's edges lead, direction by direction."""
    directions, words = edges.directions, edges.words.cpu().long()
    bits = (words[None, :] >> torch.arange(directions)[:, None]) & 1
    block = torch.arange(edges.room) // BLOCK * (BLOCK * directions)
    at = block + (words >> directions) + bits.cumsum(0) - bits
    to = edges.to.cpu().flatten()[torch.where(bits > 0, at, 0)]
    return torch.where(bits > 0, to, -1).to(edges.to.device)
