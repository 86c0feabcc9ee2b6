"""One function per command, the options that commands share, and their help."""
