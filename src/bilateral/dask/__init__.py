"""Solve Dask arrays of any chunking, lazily, with the bits of the call in memory.

`solve`, `solve_robust` and `domain_transform` take and return Dask arrays, and work with every
scheduler: threads, processes, and a cluster of `distributed`. `map_frames` applies any function to
the images of a stack. Needs ``pip install 'bilateral[dask]'``.

docs/scale.md tells how far this goes.
"""

from bilateral.dask.domain_transform import domain_transform
from bilateral.dask.frames import map_frames
from bilateral.dask.robust import solve_robust
from bilateral.dask.solve import solve

__all__ = ["domain_transform", "map_frames", "solve", "solve_robust"]
