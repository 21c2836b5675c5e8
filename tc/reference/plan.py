"""How the oracle keeps within its memory: which temporaries it computes in parts, and how large its windows are.

It is decided before anything is computed.  Values depend on it by the order of additions in float64 at most.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tc.base.frozen import frozen
from tc.language.program.program import Statement
from tc.language.program.specialization import Specialization
from tc.reference.access import Box, volume
from tc.reference.domain import pieces
from tc.reference.memory import TOTALS, need_of
from tc.reference.parts import Parts, candidates, frame_without_tensors
from tc.reference.windows import MOST_SHARED, STEP

# Parts may be computed several times: so many times the instances of the program in all, at most.
_MOST_WORK: Final = 16


@frozen
class Plan:
    """``parts``: the temporaries that are computed in parts.  ``shared``: as of ``windows``.

    ``bytes``: what it takes at most, but for windows that take what is left.
    """

    parts: frozenset[str] = frozenset()
    shared: int = MOST_SHARED
    bytes: int = 0


def plan_within(specialization: Specialization, most: int, *, bounds: bool = True) -> Plan:
    """The plan that takes at most so many bytes beside the arguments; TooLargeError where there is none.

    ``bounds``: as of ``evaluate``.
    """
    chosen: frozenset[str] = frozenset()
    need = least = need_of(specialization, bounds=bounds)
    left = candidates(specialization.program) if need.bytes > most else chosen
    while need.bytes > most:
        # The largest of those that are there when most memory is needed.  Alone it may gain nothing: what it is
        # computed from is there for longer, until that is computed in parts, too.
        found = next((name for name in need.held if name in left), None)
        if found is None:
            break
        left -= {found}
        if _is_worth_it(specialization, chosen | {found}):
            chosen |= {found}
            need = need_of(specialization, bounds=bounds, parts=chosen)
            least = min(need, least, key=lambda need: need.bytes)
    least.require(most, specialization.program.name)
    return Plan(chosen, MOST_SHARED + (most - need.bytes) // TOTALS, need.bytes)


def _is_worth_it(specialization: Specialization, names: frozenset[str]) -> bool:
    """Whether what the steps of statements need of the temporaries is small, and not computed too many times."""
    program = specialization.program
    parts = Parts(program, {name: layout.shape for name, layout in specialization.layouts.items()}, names)
    once = again = 0
    for statement in program.statements:
        box = frame_without_tensors(program, statement).box
        once += volume(box)
        if statement.target not in names and volume(box) and parts.needed(statement, box):
            fits = partial(_fits, parts, statement)
            step = next(pieces(box, parts.iterators(statement), fits))
            if not fits(step):
                return False
            again += parts.work(parts.needed(statement, step)) * -(-volume(box) // volume(step))
    return again <= _MOST_WORK * once


def _fits(parts: Parts, statement: Statement, box: Box) -> bool:
    return volume(box) <= STEP and parts.fit(statement, box)
