"""Measure what the paper's tables and the single benchmarks share: data, clocks, peers, reports."""
