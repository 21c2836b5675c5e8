"""``Proof``: what was shown of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from tc.counted import counted


@dataclass(frozen=True, slots=True)
class Proof:
    """How much was shown, for people; ``leaves``: places in the generated loops where a statement stands."""

    statements: int
    conflicts: int
    accesses: int
    leaves: int

    def __str__(self) -> str:
        return (
            f"proven: every instance of {counted(self.statements, 'statement')} runs exactly once, in "
            f"{counted(self.leaves, 'place')}; {counted(self.conflicts, 'conflict relation')} in order, none "
            f"concurrent; {counted(self.accesses, 'access relation')} in bounds"
        )
