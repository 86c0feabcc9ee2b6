"""The demo: spoil pictures, repair them, draw the outcome."""
