"""The graph as data."""
