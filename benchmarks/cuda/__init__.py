"""Speed on a CUDA device beside the bounds that its memory bandwidth sets."""
