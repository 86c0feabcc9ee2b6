"""Find, read, convert and write the files of a command."""
