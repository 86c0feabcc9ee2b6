"""Run a command on the frames of a video: a file, or pictures with numbers in their names."""
