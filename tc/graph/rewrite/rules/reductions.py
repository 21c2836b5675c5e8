"""Reductions of views, of one element, and of reductions."""

from __future__ import annotations

from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.ir.views import Permute, Reshape
from tc.graph.operators.reductions import Reduced
from tc.graph.rewrite.pattern import Any, Looked, Made, Match
from tc.graph.rewrite.rule import Rule

X: Final = Any("x")


def _operator(match: Match, name: str) -> Reduced:
    found = match.call(name).operator
    assert isinstance(found, Reduced)
    return found


def _of_permuted(builder: Builder, match: Match) -> Value:
    """The reduction over the axes that were permuted; what is left keeps the order of the permutation."""
    operator, how = _operator(match, "root"), match.view("view").how
    assert isinstance(how, Permute)
    axes = tuple(sorted(how.axes[axis] for axis in operator.axes))
    moved = Reduced(operator.name, axes, operator.operator, operator.term, operator.result, operator.type)
    found = builder.apply(moved, match.values["x"])
    left = [axis for at, axis in enumerate(how.axes) if at not in operator.axes]
    return builder.permute(found, [sorted(left).index(axis) for axis in left])


def _is_plain(operator: Reduced) -> bool:
    return operator.term == "{x}" and operator.result == "{s}"


def _over_ones(match: Match) -> bool:
    """Whether a reduction has one term for each element, which is its result."""
    operator, shape = _operator(match, "root"), match.values["x"].shape
    same = (
        match.values["x"].type is operator.type and operator.term == "{x}" and operator.result in ("{s}", "{s} / {n}")
    )
    return same and all(shape[axis] == 1 for axis in operator.axes)


def _reshaped(builder: Builder, match: Match) -> Value:
    return builder.reshape(match.values["x"], match.result.shape)


def _merges(match: Match) -> bool:
    """Whether both reduce alike, and what lies between is rounded no more than sums are."""
    outer, inner = _operator(match, "outer"), _operator(match, "inner")
    alike = outer.operator == inner.operator and outer.type is inner.type and not inner.type.is_half
    return alike and _is_plain(outer) and inner.result == "{s}" and elements(match.values["x"].shape) != 0


def _merged(builder: Builder, match: Match) -> Value:
    outer, inner = _operator(match, "outer"), _operator(match, "inner")
    left = [axis for axis in range(len(match.values["x"].shape)) if axis not in inner.axes]
    axes = tuple(sorted((*inner.axes, *(left[axis] for axis in outer.axes))))
    whole = Reduced(outer.name, axes, inner.operator, inner.term, "{s}", outer.type)
    return builder.apply(whole, match.values["x"])


def _scaled_once(match: Match) -> bool:
    """Whether a reshape before a reduction only adds or drops dimensions of one element."""
    shape = [extent for extent in match.values["x"].shape if extent != 1]
    how = match.view("view").how
    return isinstance(how, Reshape) and shape == [extent for extent in how.shape if extent != 1]


def _of_squeezed(builder: Builder, match: Match) -> Value:
    """The reduction of the operand of a reshape that only concerns dimensions of one element."""
    operator, how, source = _operator(match, "root"), match.view("view").how, match.values["x"]
    assert isinstance(how, Reshape)
    real = [axis for axis, extent in enumerate(source.shape) if extent != 1]
    shaped = [axis for axis, extent in enumerate(how.shape) if extent != 1]
    axes = tuple(real[shaped.index(axis)] for axis in operator.axes if how.shape[axis] != 1)
    moved = Reduced(operator.name, axes, operator.operator, operator.term, operator.result, operator.type)
    return builder.reshape(builder.apply(moved, source), match.result.shape)


def _loses_no_axis(match: Match) -> bool:
    operator, how = _operator(match, "root"), match.view("view").how
    assert isinstance(how, Reshape)
    kept = any(how.shape[axis] != 1 for axis in operator.axes)
    return kept and _scaled_once(match) and "{n}" not in operator.result


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "reduction over ones",
        Made("root", Reduced, (X,)),
        _reshaped,
        _over_ones,
        "sum(x, axes of one element) -> reshape(x)",
    ),
    Rule(
        "reduction of permute",
        Made("root", Reduced, (Looked("view", Permute, X),)),
        _of_permuted,
        lambda _match: True,
        "sum(permute(x), axes) -> permute(sum(x, axes before))",
    ),
    Rule(
        "reduction of squeezed",
        Made("root", Reduced, (Looked("view", Reshape, X),)),
        _of_squeezed,
        _loses_no_axis,
        "sum(reshape(x), axes) -> reshape(sum(x)), where the reshape adds or drops ones",
    ),
    Rule(
        "reduction twice",
        Made("outer", Reduced, (Made("inner", Reduced, (X,), once=True),)),
        _merged,
        _merges,
        "sum(sum(x, a), b) -> sum(x, a and b); so for products, minima and maxima",
    ),
)
