"""Gradients against differences, PyTorch and their texts."""
