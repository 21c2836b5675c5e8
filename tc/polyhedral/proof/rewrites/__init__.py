"""Proofs of what was done to statements before they were scheduled."""
