"""Fragments, names, literals, and what differs between dialects."""
