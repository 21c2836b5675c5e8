"""Gradients of definitions: from ``Program`` to ``Program``."""
