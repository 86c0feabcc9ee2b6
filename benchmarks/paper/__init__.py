"""The paper's tables and figures again: ``python -m benchmarks.paper [--data DIR]``."""
