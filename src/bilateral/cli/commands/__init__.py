"""One function per command, and the options they share."""
