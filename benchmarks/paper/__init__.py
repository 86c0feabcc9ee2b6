"""The methods that the paper compares with, as baselines."""
