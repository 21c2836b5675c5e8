"""The rules that every statement obeys, whether it comes from a text or was built in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from tc.base.errors import Span
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.draft.draft import Bounds, Draft
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
    iterators_in,
    reads_in,
    rebuild,
    walk,
)
from tc.language.program.report import Report
from tc.language.program.written_elements import index_read, scatters


def check_rules(draft: Draft, atoms: Atoms, report: Report) -> Draft:
    """Checks the left-hand side, the reduction and reads of the target; returns the draft with those unified."""
    before = report.count
    _check_left(draft, report)
    _check_reduction(draft, report)
    _check_data_ranges(draft, report)
    return draft if report.count > before else _check_own_reads(draft, atoms, report)


# --- ranges and conditions -----------------------------------------------------------------------------------


def check_where(expressions: Iterable[Expression], span: Span | None, report: Report) -> bool:
    """Whether ranges or conditions are known before anything runs, and affine in the iterators."""
    for expression in expressions:
        read = next((e for e in walk(expression) if isinstance(e, Read)), None)
        if read is not None:
            message = f"a `where` must not read tensors, this one reads `{read.tensor}`"
        elif not is_piecewise_affine(expression):
            message = "a `where` must be affine in the iterators: integer multiples and sums, divided by constants"
        else:
            continue
        report.error(message, span, "choose inside the value instead: `condition ? value : 0`")
        return False
    return True


def is_piecewise_affine(expression: Expression) -> bool:
    """Whether an index expression or a condition is piecewise affine once sizes and scalars have values."""
    if not iterators_in((expression,)):
        return all(
            not isinstance(e, Read) and (e.type.is_integer or e.type is ScalarType.BOOL) for e in walk(expression)
        )
    match expression:
        case IteratorReference():
            return True
        case Unary(_, operand):
            return is_piecewise_affine(operand)
        case Cast(operand, type):
            return type in (INDEX_TYPE, ScalarType.BOOL) and operand.type.is_integer and is_piecewise_affine(operand)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            constant = not (iterators_in((left,)) and iterators_in((right,)))
            return constant and is_piecewise_affine(left) and is_piecewise_affine(right)
        case Binary(BinaryOperator.DIVIDE | BinaryOperator.REMAINDER, left, right):
            return not iterators_in((right,)) and is_piecewise_affine(left) and is_piecewise_affine(right)
        case Binary(_, left, right):
            return (
                left.type in (INDEX_TYPE, ScalarType.BOOL) and is_piecewise_affine(left) and is_piecewise_affine(right)
            )
        case Select(condition, then, otherwise):
            return is_piecewise_affine(condition) and is_piecewise_affine(then) and is_piecewise_affine(otherwise)
        case Call("min" | "max", arguments):
            return all(map(is_piecewise_affine, arguments))
        case Call() | Read() | InRange() | Literal() | SizeReference() | ScalarReference():
            return False
        case _:
            assert_never(expression)


def iteration_order(
    expressions: Iterable[Expression], bounds: Mapping[str, Bounds], steps: Iterable[str] = ()
) -> tuple[str, ...]:
    """Iterators of blocks (``steps``), then others in order of appearance, each behind those that its range needs."""
    appearance = dict.fromkeys(steps)
    ends = (e for b in bounds.values() for e in (b.begin, b.end))
    appearance.update(dict.fromkeys(_iterator_names((*expressions, *ends))))
    appearance.update(dict.fromkeys(bounds))
    placed: dict[str, None] = {}

    def place(name: str, above: frozenset[str]) -> None:
        if name in placed or name in above:
            return
        if name in bounds:
            for other in _iterator_names((bounds[name].begin, bounds[name].end)):
                place(other, above | {name})
        placed.setdefault(name)

    for name in appearance:
        place(name, frozenset())
    return tuple(placed)


def _iterator_names(expressions: Iterable[Expression]) -> Iterator[str]:
    return (e.name for x in expressions for e in walk(x) if isinstance(e, IteratorReference))


# --- the left-hand side and reductions -----------------------------------------------------------------------


def _check_left(draft: Draft, report: Report) -> None:
    for dimension, subscript in enumerate(draft.subscripts):
        if scatters(subscript):
            if any(read.tensor == draft.target for read in reads_in(subscript)):
                report.error(
                    f"`{draft.name}` would change while it says where the statement writes",
                    draft.places.subscript(dimension),
                    "write the result to another name",
                )
        elif not is_piecewise_affine(subscript):
            report.error(
                "a subscript on the left-hand side must be affine in the iterators: integer multiples and sums, "
                "divided by constants",
                draft.places.subscript(dimension),
                "give each iterator a dimension of its own, `O(i, j)`, or divide and take remainders by constants",
            )


def _check_reduction(draft: Draft, report: Report) -> None:
    names = _list(draft.reduced)
    through = next((d for d, subscript in enumerate(draft.subscripts) if scatters(subscript)), None)
    if through is not None:
        _check_scatter(draft, through, report)
    elif draft.reduction is None and draft.reduced:
        report.error(
            f"a reduction without an operator: {names} {_verb(draft.reduced, 'stand')} only on the right of `=`",
            draft.places.operator or draft.places.statement,
            "write `+=!` to sum, or `*=!`, `min=!`, `max=!`",
        )
    if draft.reduction in (Reduction.ADD, Reduction.MULTIPLY) and draft.value.is_bool:
        report.error(
            f"`{draft.reduction.value}=` is not defined on bool",
            draft.value.span,
            "cast to a number first, for example `int32(...)`, or use `min=` and `max=`"
            + (
                f"; `{draft.reduction.value}=!`, which starts afresh, has no space in it" if _is_negation(draft) else ""
            ),
        )
    if draft.initialize:
        for name in draft.order:
            bounds = draft.bounds.get(name)
            if bounds is not None and name not in draft.reduced:
                depends = iterators_in((bounds.begin, bounds.end)).intersection(draft.reduced)
                if depends:
                    report.error(
                        f"the range of `{name}` depends on {_list(sorted(depends))}, which is reduced: it does not say "
                        f"which elements of `{draft.name}` are initialized",
                        bounds.span,
                        "let the range of the reduced iterator depend on the other one",
                    )


def _check_data_ranges(draft: Draft, report: Report) -> None:
    for data in draft.data_ranges:
        if draft.reduction is None or data.iterator not in draft.reduced:
            report.error(
                f"the range of `{data.iterator}` reads a tensor, so a statement may only reduce over it",
                data.span,
                f"write `+=!` (`*=!`, `min=!`, `max=!`), with `{data.iterator}` on the right only; elements that "
                "each have a segment read its number from a tensor: `y(j) = x(j) * s(segment(j))`",
            )
        elif data.iterator in iterators_in((data.begin, data.end)):
            report.error(f"the range of `{data.iterator}` depends on itself", data.span, "use another iterator")


def _check_scatter(draft: Draft, dimension: int, report: Report) -> None:
    """``=`` writes an element once: every iterator chooses it by itself, or through indices that are distinct."""
    if draft.reduction is not None:
        if draft.distinct:
            report.error(
                f"`distinct {draft.distinct[0].tensor}` is said of `=`, and this is a reduction",
                draft.places.operator or draft.places.statement,
                "leave it out",
            )
        return
    whole = [
        s for s in (*draft.subscripts, *(s for read in draft.distinct for s in read.subscripts)) if not scatters(s)
    ]
    free = [name for name in draft.order if not any(iterators_in((s,)) == {name} and _is_linear(s) for s in whole)]
    if not free:
        return
    tensors = dict.fromkeys(read.tensor for s in draft.subscripts if (read := index_read(s)) is not None)
    remedy = "reduce with `+=`, `*=`, `min=` or `max=`"
    if tensors and not draft.distinct:
        clauses = ", ".join(f"distinct {name}" for name in tensors)
        remedy += f", or say that no index comes twice: `where {clauses}`"
    report.error(
        f"`=` writes `{draft.name}` where data say, which may be one element for several {_list(free)}",
        draft.places.subscript(dimension),
        remedy,
    )


def _is_linear(subscript: Expression) -> bool:
    """Whether an index with one iterator differs from value to value of it."""
    match subscript:
        case IteratorReference():
            return True
        case Binary(BinaryOperator.ADD | BinaryOperator.SUBTRACT, left, right):
            one = [side for side in (left, right) if iterators_in((side,))]
            return len(one) == 1 and _is_linear(one[0])
        case Binary(BinaryOperator.MULTIPLY, left, Literal(value)) | Binary(
            BinaryOperator.MULTIPLY, Literal(value), left
        ):
            return value != 0 and _is_linear(left)
        case _:
            return False


def _is_negation(draft: Draft) -> bool:
    value = draft.value.expression
    return isinstance(value, Unary) and value.operator is UnaryOperator.NOT and not draft.initialize


# --- updates in place ----------------------------------------------------------------------------------------


def _check_own_reads(draft: Draft, atoms: Atoms, report: Report) -> Draft:
    """A statement may read the value that it updates only element by element; in blocks, it may read all of it."""
    reads = [e for e in walk(draft.value.expression) if isinstance(e, Read) and e.tensor == draft.target]
    if not reads:
        return draft
    name = draft.name
    own = [atoms.polynomial(subscript) for subscript in draft.subscripts]
    if draft.blocks:
        return draft.rebuilt(lambda expression: _unify(expression, draft, own, atoms))
    if draft.initialize:
        report.error(
            f"`{name}` is set to its neutral element before it is read here",
            draft.places.read(reads[0]),
            "write the result to another name",
        )
    elif draft.reduced:
        report.error(
            f"`{name}` would change while the reduction over {_list(draft.reduced)} still reads it",
            draft.places.read(reads[0]),
            f"reduce into another name first, then update `{name}`",
        )
    for read in reads:
        if not _is_same(read, own, atoms):
            report.error(
                f"an update in place must read `{name}` with the subscripts that it writes: other instances "
                "would see some elements before and some after the update",
                draft.places.read(read),
                "write the result to another name",
            )
            return draft
    return draft.rebuilt(lambda expression: _unify(expression, draft, own, atoms))


def _is_same(read: Read, subscripts: Sequence[Polynomial], atoms: Atoms) -> bool:
    if any(isinstance(e, Read) for subscript in read.subscripts for e in walk(subscript)):
        return False
    return all(atoms.polynomial(s) == own for s, own in zip(read.subscripts, subscripts, strict=True))


def _unify(expression: Expression, draft: Draft, own: Sequence[Polynomial], atoms: Atoms) -> Expression:
    """Reads of the element that is written spelled exactly as the left-hand side."""
    if isinstance(expression, Read) and expression.tensor == draft.target and _is_same(expression, own, atoms):
        return Read(expression.tensor, draft.subscripts, expression.type)
    return rebuild(expression, lambda child: _unify(child, draft, own, atoms))


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _verb(names: Sequence[str], verb: str) -> str:
    return f"{verb}s" if len(names) == 1 else verb
