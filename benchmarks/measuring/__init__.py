"""Contenders in processes of their own, and how they are timed."""
