"""Which loops a GPU runs badly or not at all."""
