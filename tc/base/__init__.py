"""Errors, types, records, environment and versions: what every room shares, and nothing of ours below."""
