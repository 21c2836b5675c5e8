"""Runs graphs."""
