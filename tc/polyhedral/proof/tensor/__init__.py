"""Proof of matrix instructions."""
