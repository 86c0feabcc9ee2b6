"""Print, preview and report progress in the terminal."""
