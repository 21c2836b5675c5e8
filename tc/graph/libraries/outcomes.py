"""What came of trials of libraries."""

from __future__ import annotations

from typing import Final

# The outcome of a library whose results are right.
RIGHT: Final = "right"
# Measurements are no better than this.
GAIN: Final = 1.05
