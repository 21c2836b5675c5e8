"""Graphs of ``torch.fx`` as graphs of comprehensions."""
