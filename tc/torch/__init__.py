"""Comprehensions inside of PyTorch: layers that are one line of Einstein notation, and ``torch.compile``."""

from tc.torch.explain import explain
from tc.torch.torch_module import Module

__all__ = ["Module", "explain"]
