"""Read inputs, pair files, write outputs."""
