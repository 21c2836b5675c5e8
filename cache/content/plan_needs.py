"""What plans need of a cache: kernels that have a variant, and constants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from tc.base.frozen import frozen
from tc.cache.database.database import Session
from tc.cache.format.tables import PLAN_NEEDS


@frozen
class PlanNeeds:
    """A plan by its identity, the model that it is of, and what it needs."""

    plan: str
    model: str
    kernels: frozenset[str]
    constants: frozenset[str]


@frozen
class Kept:
    """Plans whose kernels are there, with the constants and models that they need."""

    plans: frozenset[str]
    constants: frozenset[str]
    models: frozenset[str]


def plan_needs(session: Session) -> Iterator[PlanNeeds]:
    """Those of all plans, the oldest first."""
    for row in session.rows(PLAN_NEEDS):
        names = (listed(str(row[column])) for column in ("kernels", "constants"))
        yield PlanNeeds(str(row["identity"]), str(row["model"]), *names)


def served_by(kernels: frozenset[str], needs: Iterable[PlanNeeds]) -> Kept:
    """The plans that need no other kernels than these; others are prepared anew when they are asked for."""
    kept = [one for one in needs if one.kernels <= kernels]
    return Kept(
        frozenset(one.plan for one in kept),
        frozenset(constant for one in kept for constant in one.constants),
        frozenset(one.model for one in kept),
    )


def listed(text: str) -> frozenset[str]:
    """The names in a JSON list; none in any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()
