"""Rewritings that change how operands lie in memory: copies in another order, words of several elements, matrices."""
