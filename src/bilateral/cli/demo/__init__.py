"""The command `demo`: spoil maps and pictures, repair them, draw the outcome."""
