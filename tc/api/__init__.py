"""What users call: ``define``, ``Comprehension``, ``explain`` and ``tune``."""
