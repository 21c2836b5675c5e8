"""How many additions to one element follow each other, in loops some of which end with folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.polyhedral.analysis.element_counts import Count


@frozen
class Additions:
    """How many additions of a statement to one element follow each other, at most, where a tree is run once.

    ``before``: before the first fold in it, ``behind``: behind the last one; ``through``: where it runs without a fold,
    -infinity where it cannot.
    """

    before: Count = 0
    behind: Count = 0
    through: Count = 0

    def then(self, other: Additions) -> Additions:
        """One tree behind the other."""
        return Additions(
            max(self.before, self.through + other.before),
            max(other.behind, self.behind + other.through),
            self.through + other.through,
        )

    def either(self, other: Additions) -> Additions:
        """One of two trees."""
        return Additions(
            max(self.before, other.before), max(self.behind, other.behind), max(self.through, other.through)
        )

    def repeated(self, times: Count) -> Additions:
        """The tree so many times, at most."""
        if times <= 1 or not self.before:
            return self
        further = max(0, self.through)
        further = further and further * (times - 1)
        return Additions(self.before + further, self.behind + further, self.through and self.through * times)

    def longest(self, times: Count) -> Count:
        """The most that follow each other within so many times the tree; what is between its own folds aside."""
        if times <= 1:
            return max(self.before, self.behind)
        further = max(0, self.through)
        met = self.behind + self.before + (further and further * (times - 2))
        return max(met, self.repeated(times).before, self.repeated(times).behind)


# By statement.
Added: TypeAlias = Mapping[str, Additions]
NOTHING: Final = Additions()


def merged(how: Callable[[Additions, Additions], Additions], first: Added, second: Added) -> Added:
    """What two trees add, by statement, ``how`` says of each."""
    names = sorted(first.keys() | second.keys())
    return {name: how(first.get(name, NOTHING), second.get(name, NOTHING)) for name in names}
