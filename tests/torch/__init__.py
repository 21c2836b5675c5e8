"""``torch.compile(backend="tc")``."""
