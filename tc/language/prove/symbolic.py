"""Sizes that stay symbolic in a specialization: what depends on them, and what must hold for all of their values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tc.base.errors import ArgumentError
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.polynomial import Atoms, Polynomial, constant
from tc.language.isl.affine import Frame, affine_condition
from tc.language.isl.session import isl_context
from tc.language.program.program import Binary, Expression, Literal, Program, Read, SizeReference, Tensor, walk
from tc.language.program.specialization import Extent, Signature, Sizes
from tc.language.text.expression_text import expression_text


def symbolic_sizes(program: Program, signature: Signature) -> Sizes:
    """The sizes that a signature leaves open; ArgumentError where a stride would depend on one."""
    found: list[tuple[str, int]] = []
    for size in signature.symbolic:
        reference = program.tensor(size.arguments[0]).shape[0]
        assert isinstance(reference, SizeReference)
        for name in size.arguments:
            strides = dict(signature.arguments)[name].strides
            if strides is not None and strides[0] < 0:
                raise ArgumentError(
                    f"{program.name}: the size `{reference.name}` cannot stay open, because the rows of `{name}` are "
                    "reversed, and where they begin depends on it; pass a copy"
                )
        found.append((reference.name, size.most))
    for tensor in program.tensors:
        if tensor.name in (*program.arguments, *program.results):
            _require_fixed_strides(program, tensor, dict(found))
    return tuple(found)


def _require_fixed_strides(program: Program, tensor: Tensor, names: Collection[str]) -> None:
    for dimension, extent in enumerate(tensor.shape):
        for leaf in walk(extent):
            if dimension > 0 and isinstance(leaf, SizeReference) and leaf.name in names:
                raise ArgumentError(
                    f"{program.name}: the size `{leaf.name}` cannot stay open, because the strides of `{tensor.name}` "
                    f"depend on its dimension {dimension}; open only sizes of first dimensions"
                )


def symbolic_extent(program: Program, tensor: Tensor, extent: Expression, sizes: Sizes) -> Extent:
    """An extent that depends on symbolic sizes; ArgumentError unless it is linear in them and never negative.

    Linear functions may be divided by a number.
    """
    found = linear_extent(extent, sizes)
    if found is None:
        raise ArgumentError(
            f"{program.name}: {_named(sizes)} cannot stay open, because `{tensor.name}` has an extent of "
            f"{expression_text(extent)}, which is not linear in it; pass numbers"
        )
    if least(found, sizes) < 0:
        raise ArgumentError(
            f"{program.name}: {_named(sizes)} cannot stay open from 1 on, because `{tensor.name}` would have an extent "
            f"of {least(found, sizes)}; pass numbers"
        )
    return found


def linear_extent(extent: Expression, sizes: Sizes) -> Extent | None:
    """The extent as a function of symbolic sizes; None unless it is linear in them, or in a quotient of them."""
    atoms = Atoms(name for name, _ in sizes)
    polynomial = atoms.polynomial(extent)
    quotients = [atom for atom in polynomial.atoms if isinstance(atoms[atom], Binary)]
    if len(quotients) != 1 or polynomial.coefficient(quotients[0]) != constant(1):
        return _linear(polynomial, sizes)
    quotient = atoms[quotients[0]]
    assert isinstance(quotient, Binary)
    divisor = atoms.polynomial(quotient.right).constant
    if quotient.operator is not BinaryOperator.DIVIDE or divisor is None or divisor < 1:
        return None
    dividend = _linear(atoms.polynomial(quotient.left), sizes)
    # Quotients truncate, which is rounding down for what is not negative.
    if dividend is None or least(dividend, sizes) < 0:
        return None
    whole = _linear(polynomial.rest(quotients[0]) * divisor + atoms.polynomial(quotient.left), sizes)
    return None if whole is None else replace(whole, divisor=divisor)


def _linear(polynomial: Polynomial, sizes: Sizes) -> Extent | None:
    factors = tuple(polynomial.terms.get((number,), 0) for number in range(len(sizes)))
    found = Extent(polynomial.terms.get((), 0), factors)
    return found if len(polynomial.terms) == sum(map(bool, (*factors, found.constant))) else None


def least(extent: Extent, sizes: Sizes) -> int:
    """The least value of an extent."""
    ends = (min(factor, factor * most) for factor, (_, most) in zip(extent.factors, sizes, strict=True))
    return (extent.constant + sum(ends)) // extent.divisor


def greatest(extent: Extent, sizes: Sizes) -> int:
    """The greatest value of an extent."""
    ends = (max(factor, factor * most) for factor, (_, most) in zip(extent.factors, sizes, strict=True))
    return (extent.constant + sum(ends)) // extent.divisor


def always_holds(condition: Expression, sizes: Sizes) -> bool:
    """Whether isl shows a condition on the sizes for all of their values."""
    with isl_context() as context:
        frame = Frame(context, "", (), sizes=sizes)
        holds = affine_condition(condition, frame)
        return holds is not None and bool(frame.possible().is_subset(holds))


def require_plain_gathers(program: Program) -> None:
    """ArgumentError where a gather reads along an extent that stays open: its checks compare with numbers."""
    for statement in program.statements:
        for read in (e for e in walk(statement.value) if isinstance(e, Read)):
            for subscript, extent in zip(read.subscripts, program.tensor(read.tensor).shape, strict=True):
                gathers = any(isinstance(e, Read) for e in walk(subscript))
                if gathers and not isinstance(extent, Literal):
                    raise ArgumentError(
                        f"{program.name}: `{read.tensor}` is gathered from along a dimension that would stay open; "
                        "pass a number for it"
                    )


def _named(sizes: Sizes) -> str:
    return ("the size " if len(sizes) == 1 else "the sizes ") + ", ".join(f"`{name}`" for name, _ in sizes)
