"""The command `bilateral`: the only part of the package that prints."""
