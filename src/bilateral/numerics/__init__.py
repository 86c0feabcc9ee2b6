"""The linear system of a solve: set up, solved, reweighted, differentiated."""
