"""``Proof``: what was proven of a kernel."""

from __future__ import annotations

from tc.base.counted import counted
from tc.base.frozen import frozen


@frozen
class Proof:
    """How much was shown, for people; ``leaves``: places in the generated loops where a statement stands.

    ``tried``: None but for an injected source, of which nothing is proven: its results were compared with the
    definition's on so many inputs.
    """

    statements: int
    conflicts: int
    accesses: int
    leaves: int
    tried: int | None = None

    def __str__(self) -> str:
        if self.tried is not None:
            return (
                "not proven: this source was injected; its results agreed with the definition's on "
                f"{counted(self.tried, 'random input')}"
            )
        return (
            f"proven: every instance of {counted(self.statements, 'statement')} runs exactly once, in "
            f"{counted(self.leaves, 'place')}; {counted(self.conflicts, 'conflict relation')} in order, none "
            f"concurrent; {counted(self.accesses, 'access relation')} in bounds"
        )
