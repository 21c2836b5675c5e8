"""Comprehensions inside of JAX."""

from tc.jax.jax_call import call

__all__ = ["call"]
