"""Speed on a CUDA device, beside what its memory allows: ``python -m benchmarks.speed.cuda``."""
