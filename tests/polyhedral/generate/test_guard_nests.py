"""What is below a guard at the top is one nest."""

from __future__ import annotations

from tc.polyhedral.generate.guard_nests import guard_nests
from tc.polyhedral.ir.loops import Block, Guard, IndexVariable, Instance

A, B, C, D = (Instance(name, ()) for name in "ABCD")
FIRST, SECOND = IndexVariable("first"), IndexVariable("second")


def test_each_nest_has_the_guards_that_were_around_it() -> None:
    tree = Block((A, Guard(FIRST, Block((B, Guard(SECOND, C, None))), D)))
    nothing = Block(())
    assert guard_nests(tree) == Block(
        (
            A,
            Guard(FIRST, B, None),
            Guard(FIRST, Guard(SECOND, C, None), None),
            Guard(FIRST, nothing, D),
        )
    )


def test_a_single_nest_stays_as_it_is() -> None:
    for tree in (A, Guard(FIRST, A, None), Block(())):
        assert guard_nests(tree) == tree
