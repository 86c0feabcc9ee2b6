"""The command on many files against a plain loop over the library."""
