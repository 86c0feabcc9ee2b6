"""Accuracy of tasks and filters against published results and peers."""
