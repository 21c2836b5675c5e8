"""Proofs that the loops which are printed do what the proven ones do."""
