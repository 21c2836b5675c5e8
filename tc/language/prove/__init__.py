"""Proofs that accesses are inside and that every element is written once."""
