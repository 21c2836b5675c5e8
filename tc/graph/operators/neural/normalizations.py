"""Softmax, and what is normalized by its mean, its variance or its norm, along any axes."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.broadcasts import spread
from tc.graph.operators.texts import access, definition, iterators, literal, parameter, sizes, widened


@frozen
class Softmax:
    """Exponentials over their sum along the axes; ``logarithm``: the logarithm of that."""

    axes: tuple[int, ...]
    logarithm: bool = False

    def text(self, operands: Sequence[Value]) -> str:
        """The definition; the greatest element is taken off first, so that no exponential is infinite."""
        (operand,) = operands
        names, kept = _iterators(operand, self.axes)
        x = widened(access("A", names), operand.type)
        top, total, power, y = access("M", kept), access("S", kept), access("E", names), access("Y", names)
        statements = [f"{top} max=! {x}"]
        if self.logarithm:
            statements += [f"{total} +=! exp({x} - {top})", f"{y} = {operand.type}({x} - {top} - log({total}))"]
        else:
            statements += [
                f"{power} = exp({x} - {top})",
                f"{total} +=! {power}",
                f"{y} = {operand.type}({power} / {total})",
            ]
        name = "log_softmax" if self.logarithm else "softmax"
        return definition(name, [parameter(operand.type, sizes(len(names)), "A")], ["Y"], statements)


def softmax(builder: Builder, operand: Value, axes: Sequence[int], *, logarithm: bool = False) -> Value:
    """The result of ``Softmax``."""
    return builder.apply(Softmax(tuple(sorted(axes)), logarithm), operand)


@frozen
class Hardmax:
    """1 for the first of the greatest elements along an axis, 0 for the others."""

    axis: int

    def text(self, operands: Sequence[Value]) -> str:
        """The definition."""
        (operand,) = operands
        names, kept = _iterators(operand, (self.axis,))
        x, index, along = access("A", names), access("K", kept), names[self.axis]
        statements = [
            f"({access('M', kept)}, {index}) max=! ({x}, {along})",
            f"{access('Y', names)} = {operand.type}({along} == {index}) where exists {x}",
        ]
        return definition("hardmax", [parameter(operand.type, sizes(len(names)), "A")], ["Y"], statements)


def hardmax(builder: Builder, operand: Value, axis: int) -> Value:
    """The result of ``Hardmax``; without elements there is no greatest one, and nothing to do."""
    return operand if 0 in operand.shape else builder.apply(Hardmax(axis), operand)


@frozen
class Normalization:
    """What is done along ``axes``: an element less their mean, times ``inverse``, a formula of their variance ``{v}``.

    ``centred``: whether the mean is taken off; the variance is the mean of squares otherwise.  ``statistics``: formulas
    of the mean ``{m}``, the variance ``{v}`` and the inverse ``{r}`` that are results, too, and their types; the axes
    go.
    """

    name: str
    axes: tuple[int, ...]
    inverse: str
    centred: bool = True
    statistics: tuple[tuple[str, ScalarType], ...] = ()


@frozen
class Normalized:
    """``how``, then times the second operand and plus the third, which are broadcast; ``type`` of the result."""

    how: Normalization
    scaled: bool
    shifted: bool
    type: ScalarType

    def text(self, operands: Sequence[Value]) -> str:
        """The definition, whose results are ``Y`` and the statistics ``T0``, ``T1``."""
        how, operand = self.how, operands[0]
        names, kept = _iterators(operand, how.axes)
        extents, sum_of = sizes(len(names)), "+=!" if how.axes else "="
        count = " * ".join(extents[axis] for axis in how.axes) or "1"
        count = f"({count})" if len(how.axes) > 1 else count
        mean, variance, inverse = (access(letter, kept) for letter in "MVR")
        x = widened(access("A", names), operand.type)
        difference = f"({x} - {mean})" if how.centred else x
        statements = []
        if how.centred:
            statements += [f"{access('S', kept)} {sum_of} {x}", f"{mean} = {access('S', kept)} / {count}"]
        statements += [
            f"{access('Q', kept)} {sum_of} {difference} * {difference}",
            f"{variance} = {access('Q', kept)} / {count}",
            f"{inverse} = {how.inverse.format(v=variance)}",
        ]
        parameters, value = [parameter(operand.type, extents, "A")], f"{difference} * {inverse}"
        for given, letter, formula in ((self.scaled, "W", "{} * {}"), (self.shifted, "B", "{} + {}")):
            if given:
                declared, at = spread(operands[len(parameters)], operand.shape, letter)
                parameters.append(declared)
                value = formula.format(value, access(letter, at))
        statements.append(f"{access('Y', names)} = {self.type}({value})")
        for number, (formula, type) in enumerate(how.statistics):
            final = formula.format(m=mean, v=variance, r=inverse)
            statements.append(f"{access(f'T{number}', kept)} = {type}({final})")
        return definition(how.name, parameters, ["Y", *(f"T{n}" for n in range(len(how.statistics)))], statements)


def normalized(
    builder: Builder,
    how: Normalization,
    operand: Value,
    scale: Value | None = None,
    shift: Value | None = None,
    type: ScalarType | None = None,
) -> tuple[Value, ...]:
    """The results of ``Normalized``: the first has the type of the operand by default."""
    operator = Normalized(how, scale is not None, shift is not None, operand.type if type is None else type)
    operands = [value for value in (operand, scale, shift) if value is not None]
    return builder.call(operator.text(operands), *operands, operator=operator)


def inverse_deviation(epsilon: float, type: ScalarType) -> str:
    """The usual ``inverse`` of a normalization: of the root of the variance and a small number."""
    return f"rsqrt({{v}} + {literal(epsilon, computation_type(type))})"


@frozen
class UnitNorm:
    """Elements over their norm along an axis, the sum of magnitudes or the root of squares; 0 where the norm is 0."""

    axis: int
    order: int

    def text(self, operands: Sequence[Value]) -> str:
        """The definition."""
        (operand,) = operands
        names, kept = _iterators(operand, (self.axis,))
        x, total = widened(access("A", names), operand.type), access("S", kept)
        term, norm = (f"abs({x})", total) if self.order == 1 else (f"{x} * {x}", f"sqrt({total})")
        statements = [
            f"{total} +=! {term}",
            f"{access('Y', names)} = {operand.type}({total} == 0 ? 0 : {x} / {norm})",
        ]
        name = f"l{self.order}_normalized"
        return definition(name, [parameter(operand.type, sizes(len(names)), "A")], ["Y"], statements)


def _iterators(operand: Value, axes: Sequence[int]) -> tuple[list[str], list[str]]:
    """Iterators of all dimensions, and of those that are no axes."""
    names = iterators(len(operand.shape))
    return names, [name for axis, name in enumerate(names) if axis not in axes]
