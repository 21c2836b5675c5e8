"""``Proof``: what was shown of a kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Proof:
    """How much was shown, for people; ``leaves``: places in the generated loops where a statement stands."""

    statements: int
    conflicts: int
    accesses: int
    leaves: int

    def __str__(self) -> str:
        return (
            f"proven: every instance of {_count(self.statements, 'statement')} runs exactly once, in "
            f"{_count(self.leaves, 'place')}; {_count(self.conflicts, 'conflict relation')} in order, none concurrent; "
            f"{_count(self.accesses, 'access relation')} in bounds"
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
