"""Sizes that stay symbolic in a specialization: what depends on them, and what must hold for all of their values."""

from __future__ import annotations

from typing import Final

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.open_divisors import MOST_QUOTIENT
from tc.language.algebra.open_extents import extent_of
from tc.language.isl.affine import Frame, affine_condition, affine_function
from tc.language.isl.session import isl_context
from tc.language.program.extent import Extent
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Program,
    Read,
    SizeReference,
    Tensor,
    reads_in,
    walk,
)
from tc.language.program.specialization import Signature, Sizes
from tc.language.text.expression_text import expression_text

NUMBERS: Final = "pass numbers in place of tc.dynamic, which make a kernel for each size"
OPEN_DIVISORS: Final = (
    f"{NUMBERS}; remainders and quotients by an open size have quotients of {MOST_QUOTIENT} at most, as "
    "`(i + 1) % N` for `i in 0:N`"
)


def symbolic_sizes(program: Program, signature: Signature) -> Sizes:
    """The sizes that a signature leaves open; ArgumentError where the place of an element 0 would depend on one."""
    found: list[tuple[str, int]] = []
    for size in signature.symbolic:
        argument, first = size.places[0]
        reference = program.tensor(argument).shape[first]
        assert isinstance(reference, SizeReference)
        for name, dimension in size.places:
            strides = dict(signature.arguments)[name].strides
            if strides is not None and strides[dimension] < 0:
                raise ArgumentError(
                    f"{program.name}: the size `{reference.name}` cannot stay open, because dimension {dimension} of "
                    f"`{name}` is reversed, and where it begins depends on the size; pass a copy"
                )
        found.append((reference.name, size.most))
    return tuple(found)


def symbolic_extent(program: Program, tensor: Tensor, extent: Expression, sizes: Sizes) -> tuple[Extent, int]:
    """An extent that depends on symbolic sizes, and its greatest value; ArgumentError where isl cannot express it.

    A range that ends before it begins has no elements.
    """
    with isl_context() as context:
        frame = Frame(context, "", (), sizes=sizes)
        function = affine_function(extent, frame)
        if function is not None:
            return extent_of(function.project_domain_on_params(), frame)
    why = f"an extent of {expression_text(extent)}, which"
    if isinstance(extent, SizeReference):  # ``T.0``, of what is written by other subscripts than an iterator alone
        why = f"an extent {expression_text(extent)} which, by the subscripts, ranges and conditions that give it,"
    raise ArgumentError(
        f"{program.name}: {_named(sizes)} cannot stay open, because `{tensor.name}` has {why} is not quasi-affine in "
        "it: sums, multiples, quotients and remainders by numbers, minima, maxima and conditions of these; "
        f"{OPEN_DIVISORS}"
    )


def greatest(end: Expression, sizes: Sizes) -> int | None:
    """The greatest value of a function of symbolic sizes; None where isl cannot express it."""
    with isl_context() as context:
        frame = Frame(context, "", (), sizes=sizes)
        function = affine_function(end, frame)
        if function is None:
            return None
        return int(function.intersect_domain(frame.possible()).floor().max_val().to_python())


def always_holds(condition: Expression, sizes: Sizes) -> bool:
    """Whether isl shows a condition on the sizes for all of their values."""
    with isl_context() as context:
        frame = Frame(context, "", (), sizes=sizes)
        holds = affine_condition(condition, frame)
        return holds is not None and bool(frame.possible().is_subset(holds))


def require_elements(program: Program, sizes: Sizes) -> None:
    """ArgumentError where data choose among elements of which there may be none: what is out of range reads the first.

    Arguments have one, for sizes are positive.
    """
    for statement in program.statements:
        target = Read(statement.target, statement.subscripts, statement.value.type)
        for read in (target, *(e for x in (*statement.subscripts, statement.value) for e in reads_in(x))):
            tensor = program.tensor(read.tensor)
            for subscript, extent in zip(read.subscripts, tensor.shape, strict=True):
                if not any(isinstance(e, Read) for e in walk(subscript)) or isinstance(extent, Literal | SizeReference):
                    continue
                least = Binary(BinaryOperator.GREATER_EQUAL, extent, Literal(1, INDEX_TYPE), ScalarType.BOOL)
                if not always_holds(least, sizes):
                    done = "scattered to" if read is target else "gathered from"
                    raise ArgumentError(
                        f"{program.name}: `{read.tensor}` is {done} along a dimension that may have no elements for "
                        f"some sizes: {expression_text(extent)}; pass numbers, which make a kernel for each size"
                    )


def _named(sizes: Sizes) -> str:
    return ("the size " if len(sizes) == 1 else "the sizes ") + ", ".join(f"`{name}`" for name, _ in sizes)
