"""The PyTorch layer: what its backward costs, keeps and gets wrong, and what its wrapper adds."""
