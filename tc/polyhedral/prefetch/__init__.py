"""Passes that add software prefetches to the loops of a processor."""
