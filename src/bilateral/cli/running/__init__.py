"""Ways to run a command on many files: threads, a Dask cluster, shards; and the manifest."""
