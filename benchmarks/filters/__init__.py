"""The filters after the slice, timed in turns with their peers."""
