"""Reductions to few results in parts: of all elements to one, say, where no loop over results keeps cores busy.

Each part is a run of iterations, and the results of the parts are combined in their order.  How many parts there are
depends on the sizes alone, so that the bits are the same on every machine, with any number of threads.
"""

from __future__ import annotations

import math
from typing import Final

from tc.language.program.program import Statement
from tc.language.program.specialization import Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.schedule.scatter import length_of

# Fewer results than this do not keep cores busy.
_FEW: Final = 8
# Iterations that are worth a parallel loop, of all parts together.
_WORTH: Final = 1 << 17
PARTS: Final = 32


def part_sums(specialization: Specialization) -> frozenset[str]:
    """The statements that are reduced in ``PARTS`` parts."""
    return frozenset(s.name for s in specialization.program.statements if _is_alone(s))


def _is_alone(statement: Statement) -> bool:
    plain = statement.reduction is not None and statement.initialize and not statement.blocks
    if not plain or is_scatter(statement) or ranges_in(statement.value) or statement.conditions:
        return False
    lengths = {own.name: length_of(own) for own in statement.iterators}
    written = [lengths[own.name] or 0 for own in written_iterators(statement)]
    reduced = [
        length or 0 for name, length in lengths.items() if name not in {w.name for w in written_iterators(statement)}
    ]
    longest = max(reduced, default=0)
    return math.prod(written) < _FEW and longest > PARTS and math.prod(written) * math.prod(reduced) >= _WORTH
