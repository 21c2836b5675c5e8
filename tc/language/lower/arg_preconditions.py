"""What a call must fulfil so that reductions with an index have one for every element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from tc.grammar.syntax import ArgPart
from tc.language.draft.arg_parts import index_of
from tc.language.draft.draft import Draft, Item
from tc.language.program.program import INDEX_TYPE, Literal, Precondition, Program, Statement
from tc.language.program.report import Report
from tc.language.prove.missing_terms import sizes_with_indices_below, sizes_with_terms
from tc.language.prove.prove import span_of


def with_arg_preconditions(program: Program, items: Sequence[Item], report: Report) -> Program:
    """The program, with preconditions for its reductions with an index.

    Reports those of which nothing can be said before a call.
    """
    parts = {(i.target, i.origin): i.arg_part for i in items if isinstance(i, Draft) and i.arg_part is not None}
    known = {precondition.condition for precondition in program.preconditions}
    added = [
        precondition
        for statement in program.statements
        if (part := parts.get((statement.target, statement.origin))) is not None
        for precondition in _of(statement, part, report)
        if precondition.condition not in known
    ]
    return replace(program, preconditions=(*program.preconditions, *added)) if added else program


def _of(statement: Statement, part: ArgPart, report: Report) -> Iterator[Precondition]:
    origin, span = statement.origin, span_of(statement.origin)
    match part:
        case ArgPart.VALUES:
            condition = sizes_with_terms(statement)
            why = f"without a term, an element of {statement.target} has no index"
            unknown = f"it cannot be told for which sizes all elements of `{statement.target}` have a term"
            hint = "give the reduced iterators ranges that do not depend on the others"
        case ArgPart.INDICES:
            index, type = index_of(statement.value), statement.value.type
            if index is None or type is INDEX_TYPE:
                return
            condition = sizes_with_indices_below(statement, index, type.maximum)
            why = f"the indices in {statement.target} are {type}; declare it int64 among the results"
            unknown = f"it cannot be told for which sizes the indices in `{statement.target}` fit {type}"
            hint = f"declare it as `int64(...) {statement.target}` among the results"
        case _:
            assert_never(part)
    match condition:
        case None:
            report.error(unknown, span, hint)
        case Literal(True):
            pass
        case _:
            yield Precondition(condition, why, origin)
