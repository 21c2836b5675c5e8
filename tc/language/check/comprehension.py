"""One comprehension of the text, checked: syntax to draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import assert_never

from tc.base.errors import Span
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar import syntax
from tc.grammar.syntax import Assignment, BinaryOperator
from tc.language.algebra.fold import fold_constants
from tc.language.algebra.polynomial import Atoms
from tc.language.check.blocks import Placed, check_steps
from tc.language.check.check import ExpressionChecker
from tc.language.check.lets import collect_lets
from tc.language.check.scope import Scope, View
from tc.language.draft.arg_parts import check_arg_part
from tc.language.draft.draft import Bounds, DataRange, Draft, Places
from tc.language.draft.rules import check_rules, check_where, iteration_order
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Expression,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    TextOrigin,
    iterators_in,
    walk,
)
from tc.language.program.report import Report
from tc.language.program.written_elements import chosen_by, index_read, scatters
from tc.language.text.expression_text import expression_text

_REDUCTIONS = {
    Assignment.SET: None,
    Assignment.ADD: Reduction.ADD,
    Assignment.ADD_INITIALIZED: Reduction.ADD,
    Assignment.MULTIPLY: Reduction.MULTIPLY,
    Assignment.MULTIPLY_INITIALIZED: Reduction.MULTIPLY,
    Assignment.MINIMUM: Reduction.MINIMUM,
    Assignment.MINIMUM_INITIALIZED: Reduction.MINIMUM,
    Assignment.MAXIMUM: Reduction.MAXIMUM,
    Assignment.MAXIMUM_INITIALIZED: Reduction.MAXIMUM,
}
_INITIALIZED = (
    Assignment.ADD_INITIALIZED,
    Assignment.MULTIPLY_INITIALIZED,
    Assignment.MINIMUM_INITIALIZED,
    Assignment.MAXIMUM_INITIALIZED,
)


@dataclass(slots=True)
class _Clauses:
    """What the ``where`` of a statement says, once checked."""

    bounds: dict[str, Bounds]
    extents: dict[Expression, list[tuple[Expression, Span]]]
    conditions: list[Expression]
    requirements: list[tuple[Expression, Span | None]]
    required: list[Read]
    data_ranges: list[DataRange]
    distinct: list[Read]


@frozen
class _Left:
    """The subscripts of the left-hand side, and the ranges of blocks, which a ``where`` may narrow by conditions."""

    subscripts: tuple[Expression, ...]
    steps: Mapping[str, Bounds]


def check_comprehension(
    number: int,
    placed: Placed,
    target: str,
    scope: Scope,
    views: Mapping[str, View],
    atoms: Atoms,
    report: Report,
) -> Draft:
    """The draft of a statement that writes the tensor ``target``; it is useless if the report grew."""
    statement = placed.statement
    assert isinstance(statement, syntax.Assign)
    lets = collect_lets(statement, scope, report)
    # Names whose clause is in error look like iterators, of which nothing should be said.
    are_names_sound = report.count == 0
    checker = ExpressionChecker(scope, views, lets, report)
    subscripts = tuple(checker.index(s) for s in statement.subscripts or ())
    value = checker.value(statement.value)
    _check_negation(statement, checker, report)
    before = report.count
    steps = check_steps(placed, scope, checker, report)
    are_names_sound = are_names_sound and report.count == before
    clauses = _clauses(statement, _Left(subscripts, steps), checker, report)
    read = [e for data in clauses.data_ranges for e in (data.begin, data.end, IteratorReference(data.iterator))]
    parts = [*subscripts, value.expression, *read, *clauses.required, *clauses.conditions]
    order = iteration_order(parts, clauses.bounds, steps)
    left = chosen_by(subscripts) | steps.keys()
    draft = Draft(
        number=number,
        name=statement.target,
        target=target,
        subscripts=subscripts,
        reduction=_REDUCTIONS[statement.assignment],
        initialize=statement.assignment in _INITIALIZED,
        value=value,
        order=order,
        reduced=tuple(name for name in order if name not in left),
        bounds=clauses.bounds,
        extents=_extents(clauses, subscripts, report),
        conditions=tuple(clauses.conditions),
        requirements=tuple(clauses.requirements),
        required=tuple(clauses.required),
        distinct=tuple(clauses.distinct),
        places=Places(
            statement=statement.span,
            operator=statement.assignment_span,
            subscripts=tuple(s.span for s in statement.subscripts or ()),
            iterators=checker.iterators,
            reads=checker.places,
        ),
        origin=TextOrigin(statement.span),
        arg_part=statement.arg_part,
        data_ranges=tuple(clauses.data_ranges),
        blocks=placed.numbers,
    )
    if statement.arg_part is not None:
        check_arg_part(draft, statement.arg_part, statement.value.span, report)
    if are_names_sound and _check_names(draft, scope, report):
        return check_rules(draft, atoms, report)
    return draft


def _check_negation(statement: syntax.Assign, checker: ExpressionChecker, report: Report) -> None:
    """Refuses ``=!`` and ``+= !`` before a number, which are meant as one operator."""
    value = statement.value
    if not isinstance(value, syntax.Unary) or value.operator is not syntax.UnaryOperator.NOT:
        return
    is_one_word = value.span.start == statement.assignment_span.end
    if is_one_word and not checker.value(value.operand).is_bool:
        report.error(
            f"`{statement.assignment.value}!` is no assignment",
            statement.assignment_span.to(Span(value.span.start, value.span.start + 1)),
            "write `+=!` (`*=!`, `min=!`, `max=!`) to reduce, or `= !x` to negate what is true",
        )


def _check_names(draft: Draft, scope: Scope, report: Report) -> bool:
    """Whether every name that would be an iterator is one: a subscript has it, or a range is its own."""
    subscripts = [*draft.subscripts, *(s for guarded in draft.reads() for s in guarded.read.subscripts)]
    ranged = draft.bounds.keys() | {data.iterator for data in draft.data_ranges}
    unknown = set(draft.order) - iterators_in([*subscripts, *draft.conditions]) - ranged
    in_bounds = iterators_in(e for bounds in draft.bounds.values() for e in (bounds.begin, bounds.end))
    complain = report.error if draft.reduction is None else report.range_error
    for name in (n for n in draft.order if n in unknown):
        message = f"unknown name `{name}`: it stands only on the right, and in no subscript, as an index would"
        hint = scope.suggested_value(name, is_index=name in in_bounds)
        complain(message, draft.places.iterator(name), hint)
    return not unknown


# --- where ---------------------------------------------------------------------------------------------------


def _clauses(statement: syntax.Assign, left: _Left, checker: ExpressionChecker, report: Report) -> _Clauses:
    clauses = _Clauses(dict(left.steps), {}, [], [], [], [], [])
    for clause, following in zip_longest(statement.where, statement.where[1:]):
        match clause:
            case syntax.ConditionClause(syntax.Name(name)) if isinstance(
                following, syntax.RangeClause
            ) and not checker.is_declared(name):
                report.error(
                    f"`{name}` alone is no condition",
                    clause.span,
                    f"every index has a range of its own: `where {name} in 0:N, ...`",
                )
            case syntax.RangeClause():
                _range(clause, left, checker, clauses, report)
            case syntax.LetClause(name):
                if name in left.steps:
                    report.error(f"`{name}` has a meaning already", clause.name_span, "choose another name")
            case syntax.ExistsClause(access):
                result = checker.access(access)
                if isinstance(result.expression, Read):
                    clauses.required.append(result.expression)
                elif not report.count:
                    report.error("`exists` needs the access of a tensor", access.span, "write `exists T(i)`")
            case syntax.DistinctClause(name, span):
                clauses.distinct += _distinct(name, span, left.subscripts, checker, report)
            case syntax.ConditionClause(condition):
                _condition(checker.condition(condition), clause.span, clauses, report)
            case _:
                assert_never(clause)
    return clauses


def _range(
    clause: syntax.RangeClause,
    left: _Left,
    checker: ExpressionChecker,
    clauses: _Clauses,
    report: Report,
) -> None:
    subject, begin, end = checker.index(clause.subject), checker.index(clause.begin), checker.index(clause.end)
    if scatters(subject) and subject in left.subscripts:
        _extent(clause, (subject, begin, end), clauses, report)
    elif not isinstance(subject, IteratorReference) or subject.name in left.steps:
        for operator, bound in ((BinaryOperator.GREATER_EQUAL, begin), (BinaryOperator.LESS, end)):
            _condition(Binary(operator, subject, bound, ScalarType.BOOL), clause.span, clauses, report)
    elif any(isinstance(e, Read) for bound in (begin, end) for e in walk(bound)):
        clauses.data_ranges.append(DataRange(subject.name, begin, end, clause.span))
    elif check_where((begin, end), clause.span, report):
        if subject.name in clauses.bounds:
            first = clauses.bounds[subject.name]
            begin = Call("max", (first.begin, begin), INDEX_TYPE)
            end = Call("min", (first.end, end), INDEX_TYPE)
        clauses.bounds[subject.name] = Bounds(begin, end, clause.span)


def _distinct(
    name: str, span: Span, subscripts: tuple[Expression, ...], checker: ExpressionChecker, report: Report
) -> list[Read]:
    """The subscripts of the left-hand side that are elements of a tensor by that name."""
    tensor = checker.tensor(name)
    reads = (read for subscript in subscripts if (read := index_read(subscript)) is not None)
    found = [read for read in reads if read.tensor == tensor]
    if not found:
        report.error(
            f"`distinct {name}` says nothing: no subscript of the left-hand side is an element of `{name}` by itself",
            span,
            "it says of `y(I(b)) = ...` that no index comes twice: `where distinct I`",
        )
    return found


def _extent(
    clause: syntax.RangeClause,
    said: tuple[Expression, Expression, Expression],
    clauses: _Clauses,
    report: Report,
) -> None:
    """``I(b) in 0:V`` on a left-hand side with ``I(b)``: the extent of the dimension in which it scatters."""
    subject, begin, end = said
    if begin != Literal(0, INDEX_TYPE) or iterators_in((end,)) or scatters(end):
        report.error(
            "the range of a subscript that reads a tensor is that of a whole dimension, for all instances",
            clause.span,
            f"let it begin at 0 and end at a size: `{expression_text(subject)} in 0:N`",
        )
        return
    clauses.extents.setdefault(subject, []).append((end, clause.span))


def _extents(clauses: _Clauses, subscripts: tuple[Expression, ...], report: Report) -> dict[int, Expression]:
    """Those of dimensions.  One range of a subscript is that of all its dimensions; several follow their order."""
    found: dict[int, Expression] = {}
    for subject, said in clauses.extents.items():
        dimensions = [d for d, subscript in enumerate(subscripts) if subscript == subject]
        ends = [end for end, _ in said]
        if len(ends) not in (1, len(dimensions)):
            text = expression_text(subject)
            report.error(
                f"`{text}` has {len(ends)} ranges, but is the subscript of {len(dimensions)} "
                f"{'dimension' if len(dimensions) == 1 else 'dimensions'}",
                said[-1][1],
                f"give `{text}` one range, or one for each of its dimensions, in their order",
            )
        found.update(zip(dimensions, ends * len(dimensions) if len(ends) == 1 else ends, strict=False))
    return found


def _condition(condition: Expression, span: Span, clauses: _Clauses, report: Report) -> None:
    before = report.count
    if not check_where((condition,), span, report) or before:
        return
    if iterators_in((condition,)):
        clauses.conditions.append(condition)
        return
    required = fold_constants(condition)
    if not isinstance(required, Literal):
        clauses.requirements.append((required, span))
    elif not required.value:
        report.range_error("this condition never holds", span)
