"""Checks whether a GPU can run the generated loops well."""
