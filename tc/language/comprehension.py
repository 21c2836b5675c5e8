"""One comprehension of the text, checked: syntax to draft."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from tc.errors import Span
from tc.grammar import syntax
from tc.grammar.syntax import Assignment, BinaryOperator
from tc.language.check import ExpressionChecker
from tc.language.draft import Bounds, Draft
from tc.language.polynomial import Atoms, Polynomial
from tc.language.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    ScalarReference,
    Select,
    SizeReference,
    TextOrigin,
    Unary,
    rebuild,
    walk,
)
from tc.language.report import Report
from tc.language.scope import Scope, View
from tc.language.uses import walk_syntax
from tc.types import ScalarType

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
# Nested `where x = ...` can double an expression each time.
_MAXIMUM_NODES = 10_000


@dataclass(slots=True)
class _Clauses:
    """What the ``where`` of a statement says, once checked."""

    bounds: dict[str, Bounds]
    conditions: list[Expression]
    requirements: list[tuple[Expression, Span | None]]
    required: list[Read]


def check_comprehension(
    number: int,
    statement: syntax.Assign,
    target: str,
    scope: Scope,
    views: Mapping[str, View],
    atoms: Atoms,
    report: Report,
) -> Draft:
    """The draft of a statement that writes the tensor ``target``; it is useless if the report grew."""
    lets = _lets(statement, scope, report)
    checker = ExpressionChecker(scope, views, lets, report)
    if report.count:
        # A `where x = ...` in error would be reported again wherever x is used.
        lets.clear()
    subscripts = tuple(checker.index(s) for s in statement.subscripts or ())
    _check_left(statement, subscripts, report)
    value = checker.value(statement.value)
    clauses = _clauses(statement, checker, report)
    everything = [*subscripts, value.expression, *clauses.required, *clauses.conditions]
    everything += [e for b in clauses.bounds.values() for e in (b.begin, b.end)]
    left = {e.name for s in subscripts for e in walk(s) if isinstance(e, IteratorReference)}
    order = _order(everything, clauses.bounds)
    reduced = tuple(name for name in order if name not in left)
    draft = Draft(
        number=number,
        target=target,
        subscripts=subscripts,
        reduction=_REDUCTIONS[statement.assignment],
        initialize=statement.assignment in _INITIALIZED,
        value=value,
        order=order,
        reduced=reduced,
        bounds=clauses.bounds,
        conditions=tuple(clauses.conditions),
        requirements=tuple(clauses.requirements),
        required=tuple(clauses.required),
        iterator_places=checker.iterators,
        read_places=checker.places,
        span=statement.span,
        origin=TextOrigin(statement.span),
    )
    _check_reduction(statement, draft, report)
    return _check_own_reads(statement, draft, atoms, report)


# --- where ---------------------------------------------------------------------------------------------------


def _lets(statement: syntax.Assign, scope: Scope, report: Report) -> dict[str, syntax.Expression]:
    """The names that ``where x = e`` defines; those in error are left out."""
    found: dict[str, syntax.Expression] = {}
    sizes: dict[str, int] = {}
    for clause in statement.where:
        if isinstance(clause, syntax.LetClause):
            if scope.is_declared(clause.name):
                report.error(f"`{clause.name}` has a meaning already", clause.name_span, "choose another name")
            elif clause.name in found:
                report.error(f"`{clause.name}` is defined twice", clause.name_span)
            else:
                found[clause.name] = clause.value

    def measure(name: str, above: tuple[str, ...]) -> int:
        if name not in sizes:
            total = 0
            for part in walk_syntax(found[name]):
                inner = part.name if isinstance(part, syntax.Name) and part.name in found else None
                if inner is not None and inner in (*above, name):
                    report.error(f"`{name}` is defined by itself", part.span)
                    return 0
                total += 1 if inner is None else measure(inner, (*above, name))
            sizes[name] = total
        return sizes[name]

    for name, value in found.items():
        if measure(name, ()) > _MAXIMUM_NODES:
            report.error(f"`{name}` stands for more than {_MAXIMUM_NODES} operations", value.span)
    return found


def _clauses(statement: syntax.Assign, checker: ExpressionChecker, report: Report) -> _Clauses:
    clauses = _Clauses({}, [], [], [])
    for clause in statement.where:
        match clause:
            case syntax.RangeClause():
                _range(clause, checker, clauses, report)
            case syntax.LetClause():
                pass
            case syntax.ExistsClause(access):
                result = checker.value(access)
                if isinstance(result.expression, Read):
                    clauses.required.append(result.expression)
                elif not report.count:
                    report.error("`exists` needs the access of a tensor", access.span, "write `exists T(i)`")
            case syntax.ConditionClause(condition):
                _condition(checker.condition(condition), clause.span, clauses, report)
            case _:
                assert_never(clause)
    return clauses


def _range(clause: syntax.RangeClause, checker: ExpressionChecker, clauses: _Clauses, report: Report) -> None:
    subject, begin, end = checker.index(clause.subject), checker.index(clause.begin), checker.index(clause.end)
    if not isinstance(subject, IteratorReference):
        for operator, bound in ((BinaryOperator.GREATER_EQUAL, begin), (BinaryOperator.LESS, end)):
            _condition(Binary(operator, subject, bound, ScalarType.BOOL), clause.span, clauses, report)
    elif _check_where((begin, end), clause.span, report):
        if subject.name in clauses.bounds:
            first = clauses.bounds[subject.name]
            begin = Call("max", (first.begin, begin), INDEX_TYPE)
            end = Call("min", (first.end, end), INDEX_TYPE)
        clauses.bounds[subject.name] = Bounds(begin, end, clause.span)


def _condition(condition: Expression, span: Span, clauses: _Clauses, report: Report) -> None:
    if not _check_where((condition,), span, report):
        return
    if any(isinstance(e, IteratorReference) for e in walk(condition)):
        clauses.conditions.append(condition)
    else:
        clauses.requirements.append((condition, span))


def _check_where(expressions: Iterable[Expression], span: Span, report: Report) -> bool:
    """Ranges and conditions are known before anything runs, and affine in the iterators."""
    for expression in expressions:
        read = next((e for e in walk(expression) if isinstance(e, Read)), None)
        if read is not None:
            report.error(
                f"a `where` must not read tensors, this one reads `{read.tensor}`",
                span,
                "choose inside the value instead: `condition ? value : 0`",
            )
            return False
        if not is_affine(expression):
            report.error(
                "a `where` must be affine in the iterators: sums of multiples, divided by constants",
                span,
                "choose inside the value instead: `condition ? value : 0`",
            )
            return False
    return True


def is_affine(expression: Expression) -> bool:
    """Whether an index expression or a condition is piecewise affine once sizes and scalars have values."""
    if not any(isinstance(e, IteratorReference) for e in walk(expression)):
        return all(
            not isinstance(e, Read) and (e.type.is_integer or e.type is ScalarType.BOOL) for e in walk(expression)
        )
    match expression:
        case IteratorReference():
            return True
        case Unary(_, operand):
            return is_affine(operand)
        case Cast(operand, type):
            return type in (INDEX_TYPE, ScalarType.BOOL) and operand.type.is_integer and is_affine(operand)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            return is_affine(left) and is_affine(right) and (_is_constant(left) or _is_constant(right))
        case Binary(BinaryOperator.DIVIDE | BinaryOperator.REMAINDER, left, right):
            return is_affine(left) and is_affine(right) and _is_constant(right)
        case Binary(_, left, right):
            return left.type in (INDEX_TYPE, ScalarType.BOOL) and is_affine(left) and is_affine(right)
        case Select(condition, then, otherwise):
            return is_affine(condition) and is_affine(then) and is_affine(otherwise)
        case Call("min" | "max", arguments):
            return all(map(is_affine, arguments))
        case Call() | Read() | Literal() | SizeReference() | ScalarReference():
            return False
        case _:
            assert_never(expression)


def _is_constant(expression: Expression) -> bool:
    return not any(isinstance(e, IteratorReference | Read) for e in walk(expression))


# --- the left-hand side, reductions, in-place updates ---------------------------------------------------------


def _check_left(statement: syntax.Assign, subscripts: Sequence[Expression], report: Report) -> None:
    for written, subscript in zip(statement.subscripts or (), subscripts, strict=True):
        if any(isinstance(e, Read) for e in walk(subscript)):
            report.error(
                "a subscript on the left-hand side must not read a tensor",
                written.span,
                "scattering is not supported: turn the statement around into a gather",
            )
        elif not is_affine(subscript):
            report.error("a subscript on the left-hand side must be affine in the iterators", written.span)


def _check_reduction(statement: syntax.Assign, draft: Draft, report: Report) -> None:
    if draft.reduction is None and draft.reduced:
        names = ", ".join(f"`{name}`" for name in draft.reduced)
        verb = "stands" if len(draft.reduced) == 1 else "stand"
        report.error(
            f"a reduction without an operator: {names} {verb} only on the right of `=`",
            statement.assignment_span,
            "write `+=!` to sum, or `*=!`, `min=!`, `max=!`",
        )
    if draft.reduction in (Reduction.ADD, Reduction.MULTIPLY) and draft.value.is_bool:
        report.error(
            f"`{statement.assignment.value}` is not defined on bool",
            draft.value.span,
            "cast to a number first, for example `int32(...)`, or use `min=` and `max=`",
        )


def _own_reads(expression: Expression, tensor: str) -> Iterator[Read]:
    return (e for e in walk(expression) if isinstance(e, Read) and e.tensor == tensor)


def _check_own_reads(statement: syntax.Assign, draft: Draft, atoms: Atoms, report: Report) -> Draft:
    """A statement may read the value that it updates only element by element."""
    reads = list(_own_reads(draft.value.expression, draft.target))
    if not reads or report.count:
        return draft
    name, span = statement.target, draft.read_places.get(reads[0], statement.span)
    if draft.initialize:
        report.error(
            f"`{name}` is set to its neutral element before it is read here",
            span,
            f"write the result to another name, or use `{statement.assignment.value.rstrip('!')}`",
        )
    elif draft.reduced:
        names = ", ".join(f"`{n}`" for n in draft.reduced)
        report.error(
            f"`{name}` would change while the reduction over {names} still reads it",
            span,
            f"reduce into another name first, then update `{name}`",
        )
    own = [atoms.polynomial(s) for s in draft.subscripts]
    for read in reads:
        if not _same(read, own, atoms):
            report.error(
                f"an update in place must read `{name}` with the subscripts that it writes: other instances "
                "would see some elements before and some after the update",
                draft.read_places.get(read, statement.span),
                "write the result to another name",
            )
            return draft
    return draft.rebuilt(lambda expression: _with_subscripts(expression, draft))


def _same(read: Read, subscripts: Sequence[Polynomial], atoms: Atoms) -> bool:
    if any(isinstance(e, Read) for s in read.subscripts for e in walk(s)):
        return False
    return all(atoms.polynomial(s) == own for s, own in zip(read.subscripts, subscripts, strict=True))


def _with_subscripts(expression: Expression, draft: Draft) -> Expression:
    """Own reads spelled exactly as the left-hand side."""
    if isinstance(expression, Read) and expression.tensor == draft.target:
        return Read(expression.tensor, draft.subscripts, expression.type)
    return rebuild(expression, lambda child: _with_subscripts(child, draft))


# --- iterators -----------------------------------------------------------------------------------------------


def _order(expressions: Iterable[Expression], bounds: Mapping[str, Bounds]) -> tuple[str, ...]:
    """Iterators in order of appearance, each behind those on which its range depends."""
    appearance = dict.fromkeys(
        e.name for expression in expressions for e in walk(expression) if isinstance(e, IteratorReference)
    )
    appearance.update(dict.fromkeys(bounds))
    placed: dict[str, None] = {}

    def place(name: str, above: frozenset[str]) -> None:
        if name in bounds and name not in above:
            for expression in (bounds[name].begin, bounds[name].end):
                for e in walk(expression):
                    if isinstance(e, IteratorReference) and e.name not in placed:
                        place(e.name, above | {name})
        placed.setdefault(name)

    for name in appearance:
        if name not in placed:
            place(name, frozenset())
    return tuple(placed)
