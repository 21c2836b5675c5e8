"""``Progress``: what range inference knows about one statement after each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tc.base.frozen import frozen
from tc.language.algebra.extremes import Interval
from tc.language.algebra.polynomial import Polynomial
from tc.language.draft.draft import Draft
from tc.language.program.program import Read


@frozen
class Access:
    """``condition >= 0`` keeps one subscript of a read inside."""

    condition: Polynomial
    read: Read


@dataclass(slots=True)
class Progress:
    """What is known about one statement.

    ``intervals``: of the resolved iterators.  ``facts``: polynomials that the ``where`` keeps from being negative.
    ``accesses``: None until the extents of every tensor read are known.  ``failed``: it has an error already.
    """

    draft: Draft
    intervals: dict[str, Interval]
    unresolved: set[str]
    facts: tuple[Polynomial, ...]
    accesses: Sequence[Access] | None = None
    failed: bool = False
