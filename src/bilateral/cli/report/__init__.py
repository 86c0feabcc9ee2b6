"""The HTML report of a command, and the errors of results against a truth."""
