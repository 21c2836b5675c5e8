"""Dependences, and the schedule that isl finds for them."""
