"""Measure the paper's tables and figures again, and write them to docs/results/."""

import os

# Before NumPy's import: BLAS threads spin on after a call, on the cores of what is timed next.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
