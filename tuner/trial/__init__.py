"""Trials of candidates: compiled, checked and measured in processes of their own."""
