"""Comprehensions inside of PyTorch: layers that are one line of Einstein notation."""

from tc.torch.torch_module import Module

__all__ = ["Module"]
