"""Definitions to programs, and programs to specializations."""
