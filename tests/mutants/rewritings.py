"""Mistakes of what computes programs in another way: scans, scatters with owners, steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, assert_never
from unittest.mock import patch

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import INDEX_TYPE, Binary, Literal, Program, Reduction, Statement
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence
from tc.polyhedral.schedule.scan import scan_reductions
from tc.polyhedral.schedule.scatter import share_scatters
from tc.polyhedral.schedule.schedule import schedule_scop
from tests.mutants.mistakes import Mistake

Rewriting = Callable[..., Any]


def _changed(rewriting: Rewriting, change: Callable[[Program], Program]) -> Rewriting:
    """The rewriting of a specialization, behind which its program is changed."""

    def made(*arguments: Any) -> Any:
        specialization, done = rewriting(*arguments)
        return replace(specialization, program=change(specialization.program)), done

    return made


def _of_statements(change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    return lambda program: replace(program, statements=tuple(map(change, program.statements)))


def _is_added(statement: Statement) -> bool:
    return statement.reduction is not None and statement.target.endswith("_carry")


def _without_carry(statement: Statement) -> Statement:
    """Nothing is added to the carry, or multiplied with it."""
    if not _is_added(statement):
        return statement
    neutral = 1.0 if statement.reduction is Reduction.MULTIPLY else 0.0
    return replace(statement, value=Literal(neutral, statement.value.type))


def _a_step_less(statement: Statement) -> Statement:
    if not _is_added(statement):
        return statement
    first, *others = statement.iterators
    assert isinstance(first.end, Literal)
    return replace(statement, iterators=(replace(first, end=Literal(first.end.value - 1, INDEX_TYPE)), *others))


def _ending(operator: BinaryOperator) -> Callable[[Statement], Statement]:
    """Every owner has the first element of the next one, too, or not the last of its own."""

    def ending(statement: Statement) -> Statement:
        owned = statement.owned
        if owned is None:
            return statement
        end = Binary(operator, owned.end, Literal(1, INDEX_TYPE), INDEX_TYPE)
        return replace(statement, owned=replace(owned, end=end))

    return ending


def _reversed(*arguments: Any) -> ScheduleTree:
    """The tree whose loops over steps run from the last one to the first."""
    tree = schedule_scop(*arguments)
    return replace(tree, root=_backwards(tree.root))


def _backwards(node: Node) -> Node:
    match node:
        case Leaf() | Extension():
            return node
        case Sequence(filters):
            return Sequence(tuple(replace(own, child=_backwards(own.child)) for own in filters))
        case Band(members, _, child):
            changed = tuple(m if m.coincident else replace(m, function=m.function.neg()) for m in members)
            return replace(node, members=changed, child=_backwards(child))
        case _:
            assert_never(node)


OWNERS: Final = tc.GpuOptions(tc.ScheduleOptions(scatter_owners=3))
# By what is wrong: a case of the corpus in which it is, options, and the mistake.
REWRITINGS: Final[dict[str, tuple[str, tc.GpuOptions, str, Rewriting]]] = {
    "a carry that is lost": (
        *("cumulative_sum", tc.GpuOptions(), "scan_reductions"),
        _changed(scan_reductions, _of_statements(_without_carry)),
    ),
    "a carry without its last step": (
        *("cumulative_sum", tc.GpuOptions(), "scan_reductions"),
        _changed(scan_reductions, _of_statements(_a_step_less)),
    ),
    "a carry of exponentials that is lost": (
        *("logcumsumexp", tc.GpuOptions(), "scan_reductions"),
        _changed(scan_reductions, _of_statements(_without_carry)),
    ),
    "two owners of one element": (
        *("embedding_gradient", OWNERS, "share_scatters"),
        _changed(share_scatters, _of_statements(_ending(BinaryOperator.ADD))),
    ),
    "elements without an owner": (
        *("embedding_gradient", OWNERS, "share_scatters"),
        _changed(share_scatters, _of_statements(_ending(BinaryOperator.SUBTRACT))),
    ),
    "steps of a network reordered": ("recurrent_network", tc.GpuOptions(), "schedule_scop", _reversed),
    "steps of a sweep reordered": ("gauss_seidel", tc.GpuOptions(), "schedule_scop", _reversed),
    "steps of a filter reordered": ("second_order_filter", tc.GpuOptions(), "schedule_scop", _reversed),
    "steps of all shortest paths reordered": ("floyd_warshall", tc.GpuOptions(), "schedule_scop", _reversed),
}


def mistake_of(name: str) -> Mistake:
    """The mistake with this name."""
    _, _, patched, by = REWRITINGS[name]
    return Mistake(name, partial(patch, f"tc.polyhedral.schedules.{patched}", by))
