"""``Program`` and ``Specialization``: what a definition means."""
