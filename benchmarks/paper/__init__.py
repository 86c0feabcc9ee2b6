"""The paper's tables and figures again: ``python -m benchmarks.paper [--data DIR]``."""

import os

# Before NumPy is there: BLAS's threads go on spinning after a call, on the cores of what is timed
# next.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
