"""Which members of the bands in a tree stand above each statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import islpy as isl

from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, Sequence, statement_names


def paths_below(
    node: Node, domain: isl.UnionSet, above: tuple[Member, ...] = ()
) -> Iterator[tuple[str, tuple[Member, ...]]]:
    """Every statement of ``domain`` with the members between ``node`` and it, outermost first, after ``above``."""
    match node:
        case Leaf():
            yield from ((name, above) for name in statement_names(domain))
        case Band(members, _, child):
            yield from paths_below(child, domain, (*above, *members))
        case Sequence(filters):
            for branch in filters:
                yield from paths_below(branch.child, domain.intersect(branch.domain), above)
        case Extension(child=child):
            yield from paths_below(child, domain, above)
        case _:
            assert_never(node)
