"""Sums that are made in parts: what partial sums are added to, and when."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Total:
    """What the partial sums of one statement are added to while a loop runs.

    ``wide``: in float64; else in float32.  ``buffer``: what the partial sums are in, if not in variables.
    ``cascaded``: totals are in float32, each of a few partial sums, and these are added up in float64.
    """

    statement: str
    wide: bool
    buffer: str | None = None
    cascaded: bool = False


@frozen
class Fold:
    """The partial sums of a statement are added to their totals, and begun again, behind so many iterations each."""

    statement: str
    every: int = 1
