"""A tuning run from its settings to its result."""
