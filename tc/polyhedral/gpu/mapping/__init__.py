"""Loops to blocks and threads."""
