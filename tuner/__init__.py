"""The autotuner: spaces, searches, trials."""
