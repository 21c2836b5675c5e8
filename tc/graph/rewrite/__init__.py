"""Rewriting: rules as data, and the worklist that applies them."""
