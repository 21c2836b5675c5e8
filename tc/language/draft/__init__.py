"""Typed statements whose ranges are still to be inferred, and the rules they obey."""
