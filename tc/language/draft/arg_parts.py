"""What the two statements of a reduction with an index have to fulfil, once they are typed."""

from __future__ import annotations

from tc.base.errors import Span
from tc.grammar.syntax import ArgPart, BinaryOperator
from tc.language.draft.draft import Draft
from tc.language.program.functions import FUNCTIONS
from tc.language.program.program import Binary, Call, Cast, Expression, Read, Select, Unary, children, walk
from tc.language.program.report import Report
from tc.language.program.written_elements import scatters

_SUMS = (BinaryOperator.ADD, BinaryOperator.SUBTRACT)


def check_arg_part(draft: Draft, part: ArgPart, span: Span, report: Report) -> None:
    """Reports a value that two loops may round differently, or an index that is not one."""
    match part:
        case ArgPart.VALUES if any(map(scatters, draft.subscripts)):
            report.error(
                f"data choose which elements of `{draft.name}` have terms, and one without has no index",
                draft.places.statement,
                f"reduce into `{draft.name}` alone, and reduce the indices of the terms that are equal to it in a "
                "second statement",
            )
        case ArgPart.VALUES if not is_reproducible(draft.value.expression):
            report.error(
                "this value is computed twice, once for its index, and may be rounded differently then",
                span,
                f"write it to a tensor of its own first, and reduce that: `v(...) = ...`, `({draft.name}(...), ...) "
                "max=! (v(...), ...)`",
            )
        case ArgPart.INDICES:
            index = index_of(draft.value.expression)
            if index is not None and (
                not index.type.is_integer or any(isinstance(e, Read | Cast) for e in walk(index))
            ):
                report.error(
                    "the index of a reduction consists of iterators, sizes and integers",
                    span,
                    "read the tensor where the index is used: `y(i) = T(k(i))`",
                )


def index_of(value: Expression) -> Expression | None:
    """The index in the value of the second statement, None where it is a constant."""
    match value:
        case Select(_, Cast(operand), _):
            return operand
        case _:
            return None


def is_reproducible(value: Expression) -> bool:
    """Whether every loop that computes the value computes the same bits.

    A product inside a sum may become one instruction or two, functions differ between lanes and scalars, and results of
    operations on halves are rounded only where they are stored.
    """
    if value.type.is_integer and not any(e.type.is_floating for e in walk(value)):
        return True
    match value:
        case Binary(operator, left, right) if operator in _SUMS and (_ends_in_product(left) or _ends_in_product(right)):
            return False
        case Binary() if value.type.is_half:
            return False
        case Call(function) if FUNCTIONS[function].ulps:
            return False
        case _:
            return all(map(is_reproducible, children(value)))


def _ends_in_product(value: Expression) -> bool:
    match value:
        case Binary(BinaryOperator.MULTIPLY, _, _):
            return True
        case Unary(_, operand) | Cast(operand):
            return _ends_in_product(operand)
        case Select(_, then, otherwise):
            return _ends_in_product(then) or _ends_in_product(otherwise)
        case _:
            return False
