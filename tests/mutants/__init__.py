"""Kernels with one mistake each: what the proof and the emulator say of them.

``python -m tests.mutants`` goes through the whole corpus and prints the count.
"""
