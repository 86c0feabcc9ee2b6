"""Call the library with random inputs, most of them valid, and check a property of each result.

`python -m fuzz --help` runs harnesses; `harnesses/` holds one per subject. A failure names a
harness and a seed, which replay it.
"""
