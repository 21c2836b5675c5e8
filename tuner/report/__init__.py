"""The report about a tuning run: one page of HTML."""
