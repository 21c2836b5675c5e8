"""The steps of a schedule, named as the rewrite rules that they correspond to."""
