"""The libraries that are measured beside ours: one module for each, imported in the processes that measure it."""
