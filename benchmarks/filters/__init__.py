"""The filters after the solve, against authors and peers: ``python -m benchmarks.filters``."""
