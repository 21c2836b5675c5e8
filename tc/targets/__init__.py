"""Options, targets and machines."""
