"""The HTML report of a command."""
