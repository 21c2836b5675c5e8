"""The commands ``tc-tune`` and ``tc-cache``."""
