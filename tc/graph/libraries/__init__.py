"""Nodes that libraries compute where that was measured to be quicker than our kernels."""
