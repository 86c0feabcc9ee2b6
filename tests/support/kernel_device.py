"""Device of the kernel tests: a GPU, or the CPU with Triton's interpreter.

The import skips a test file where neither can run. It comes before the imports of kernels.
"""

import os

import pytest

pytest.importorskip("torch", reason="the kernels need PyTorch")
pytest.importorskip("triton", reason="the kernels need Triton")

import torch

COMPILED = torch.cuda.is_available()
if not COMPILED and os.environ.get("TRITON_INTERPRET") != "1":  # see conftest.py
    pytest.skip("no GPU that PyTorch can use, and no interpreter", allow_module_level=True)

DEVICE = "cuda" if COMPILED else "cpu"
