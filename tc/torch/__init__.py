"""Comprehensions inside of PyTorch."""
