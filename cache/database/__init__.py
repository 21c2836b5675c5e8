"""Files and servers that hold a cache, and how they are opened."""
