"""How kernels are compiled: once for all sizes.

Triton compiles a kernel anew for each combination of numbers that are 1 or a multiple of 16. With
sizes among them, images of many sizes would wait for compilations again and again.
"""

import triton

_SIZES = [
    "across",
    "bounds_of_images",
    "classes",
    "coarse_room",
    "columns",
    "count",
    "depth",
    "entries",
    "height",
    "images",
    "lower",
    "most_steps",
    "programs",
    "radius",
    "room",
    "rows",
    "steps",
    "stride",
    "tiles",
    "upper",
    "width",
]

kernel = triton.jit(do_not_specialize=_SIZES)
"""Of functions that the host launches."""
