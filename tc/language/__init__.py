"""Syntax trees to ``Program``, and ``Program`` to ``Specialization``."""
