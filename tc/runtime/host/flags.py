"""Flags for every library that the C compiler makes, apart from what calls it: cached libraries need no compiler."""

from __future__ import annotations

from typing import Final

SHARED: Final = ("-std=gnu11", "-g0", "-fPIC", "-shared", "-fno-semantic-interposition")
