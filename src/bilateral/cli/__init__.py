"""Commands for people: the only code that prints or opens files."""
