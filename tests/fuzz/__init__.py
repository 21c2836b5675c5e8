"""Random programs on random arrays with random options: kernels against the oracle.

``python -m tests.fuzz`` runs many; ``test_random_programs.py`` runs a fixed set within the test suite.
"""
