"""Searches of the suite, and what they found."""
