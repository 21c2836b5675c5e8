"""Names, scopes and types of a definition."""
