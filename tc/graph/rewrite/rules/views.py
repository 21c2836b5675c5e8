"""Views of views, and views that leave everything as it is; pointwise operators go before views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call, View
from tc.graph.ir.sizes import Dimension, elements
from tc.graph.ir.values import Value
from tc.graph.ir.views import Expand, Permute, Reinterpret, Reshape, Slice
from tc.graph.operators.joining import MOST_PARTS, Concatenated
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.pattern import Any, Looked, Made, Match
from tc.graph.rewrite.rule import Rule, always

X: Final = Any("x")


def _operand(_builder: Builder, match: Match) -> Value:
    return match.values["x"]


def _same(match: Match) -> bool:
    return match.values["x"].shape == match.result.shape


def _reshaped(builder: Builder, match: Match) -> Value:
    return builder.reshape(match.values["x"], match.result.shape)


def _permuted(builder: Builder, match: Match) -> Value:
    outer, inner = match.view("outer").how, match.view("inner").how
    assert isinstance(outer, Permute)
    assert isinstance(inner, Permute)
    return builder.permute(match.values["x"], [inner.axes[axis] for axis in outer.axes])


def _is_identity(match: Match) -> bool:
    how = match.view("root").how
    return isinstance(how, Permute) and how.axes == tuple(range(len(how.axes)))


def _moves_ones(match: Match) -> bool:
    """Whether a permutation keeps the order of all dimensions with more than one element."""
    how = match.view("root").how
    assert isinstance(how, Permute)
    shape = match.values["x"].shape
    moved = [axis for axis in how.axes if shape[axis] != 1]
    return moved == sorted(moved) and match.values["x"].is_contiguous


def _sliced(builder: Builder, match: Match) -> Value:
    outer, inner = match.view("outer").how, match.view("inner").how
    assert isinstance(outer, Slice)
    assert isinstance(inner, Slice)
    pairs = list(zip(inner.starts, inner.steps, outer.starts, outer.steps, strict=True))
    starts = [start + step * further for start, step, further, _ in pairs]
    return builder.slice(match.values["x"], starts, [step * times for _, step, _, times in pairs], outer.shape)


def _is_whole(match: Match) -> bool:
    how = match.view("root").how
    assert isinstance(how, Slice)
    return set(how.starts) <= {0} and set(how.steps) <= {1} and _same(match)


def _expanded(builder: Builder, match: Match) -> Value:
    return builder.expand(match.values["x"], match.result.shape)


def _reinterpreted(builder: Builder, match: Match) -> Value:
    return builder.reinterpret(match.values["x"], match.result.type)


def _before_view(builder: Builder, match: Match) -> Value:
    """A pointwise operator of one operand, then the view."""
    operator, view = match.call("root").operator, match.view("view")
    assert isinstance(operator, Pointwise)
    made = builder.apply(operator, match.values["x"])
    if isinstance(view.how, Reshape):
        return builder.reshape(made, view.how.shape)
    assert isinstance(view.how, Permute)
    return builder.permute(made, view.how.axes)


def _between(builder: Builder, match: Match) -> Value:
    outer = match.view("outer").how
    assert isinstance(outer, Permute)
    return builder.permute(_before_view(builder, match), outer.axes)


def _is_computed(match: Match) -> bool:
    """Whether the operand of the view comes from a call, whose kernel may then have the operator too.

    There may be further views in between, before all of which it goes then.
    """
    value = match.values["x"]
    maker = match.net.maker(value.name)
    while isinstance(maker, View) and isinstance(maker.how, Reshape | Permute) and match.net.uses(value.name) == 1:
        value = match.net.value(maker.operand)
        maker = match.net.maker(value.name)
    return isinstance(maker, Call) and value.is_contiguous


def _both_before(builder: Builder, match: Match) -> Value:
    """A pointwise operator of two operands, then the view that both have."""
    operator, how = match.call("root").operator, match.view("left").how
    assert isinstance(operator, Pointwise)
    made = builder.apply(operator, match.values["x"], match.values["y"])
    if isinstance(how, Reshape):
        return builder.reshape(made, how.shape)
    assert isinstance(how, Permute)
    return builder.permute(made, how.axes)


def _alike(match: Match) -> bool:
    """Whether the views are the same of operands of the same shape, and one is made for this operator alone."""
    left, right = match.view("left"), match.view("right")
    alone = min(match.net.uses(left.result), match.net.uses(right.result)) == 1
    return alone and left.how == right.how and match.values["x"].shape == match.values["y"].shape


def _part_of(builder: Builder, match: Match) -> Value | None:
    """A slice that lies in one part of a concatenation, as a slice of that part."""
    how, call = match.view("root").how, match.net.maker(match.view("root").operand)
    if not (isinstance(how, Slice) and isinstance(call, Call) and isinstance(call.operator, Concatenated)):
        return None
    axis, before = call.operator.axis, _ZERO
    if not all(isinstance(size, int) for size in (*how.starts, *how.shape)) or how.shape[axis] == 0:
        return None
    first = how.starts[axis]
    last = first + how.steps[axis] * (how.shape[axis] - 1)
    for name in call.operands:
        part = match.net.value(name)
        until = before + part.shape[axis]
        if before <= first < until and before <= last < until:
            starts = [start - before if at == axis else start for at, start in enumerate(how.starts)]
            return builder.slice(part, starts, how.steps, how.shape)
        before = until
    return None


def _flattened(builder: Builder, match: Match) -> Value | None:
    """A concatenation of concatenations along the same axis, as one."""
    call = match.root
    assert isinstance(call, Call)
    assert isinstance(call.operator, Concatenated)
    found: list[Value] = []
    changed = False
    for name in call.operands:
        maker = match.net.maker(name)
        if isinstance(maker, Call) and maker.operator == call.operator and match.net.uses(name) == 1:
            found += map(match.net.value, maker.operands)
            changed = True
        else:
            found.append(match.net.value(name))
    return builder.apply(call.operator, *found) if changed and len(found) <= MOST_PARTS else None


def _rejoined(_builder: Builder, match: Match) -> Value | None:
    """The operand that was cut into slices, and put together again."""
    call = match.root
    assert isinstance(call, Call)
    assert isinstance(call.operator, Concatenated)
    axis, before, source = call.operator.axis, _ZERO, None
    for name in call.operands:
        maker = match.net.maker(name)
        how = getattr(maker, "how", None)
        if maker is None or not isinstance(how, Slice) or set(how.steps) != {1}:
            return None
        operand = maker.operands[0]
        wanted = [before if at == axis else 0 for at in range(len(how.starts))]
        if source not in (None, operand) or list(how.starts) != wanted:
            return None
        source, before = operand, before + how.shape[axis]
    value = None if source is None else match.net.value(source)
    return value if value is not None and value.shape == match.result.shape else None


def _concatenates(match: Match) -> bool:
    return isinstance(match.root, Call) and isinstance(match.root.operator, Concatenated)


def _of_concatenation(match: Match) -> bool:
    maker = match.net.maker(match.view("root").operand)
    return isinstance(maker, Call) and isinstance(maker.operator, Concatenated)


def _has_elements(match: Match) -> bool:
    return elements(match.result.shape) != 0


_ZERO: Final[Dimension] = 0
_Make = Callable[[Builder, Match], "Value | None"]


def _both(name: str, how: type, make: _Make, meaning: str) -> Rule:
    return Rule(name, Looked("outer", how, Looked("inner", how, X)), make, always, meaning)


RULES: Final[tuple[Rule, ...]] = (
    Rule("reshape to the same", Looked("root", Reshape, X), _operand, _same, "reshape(x, shape of x) -> x"),
    Rule("permute to the same", Looked("root", Permute, X), _operand, _is_identity, "permute(x, 0, 1, ...) -> x"),
    Rule("slice of all", Looked("root", Slice, X), _operand, _is_whole, "x[0:N] -> x"),
    Rule("expand to the same", Looked("root", Expand, X), _operand, _same, "expand(x, shape of x) -> x"),
    Rule(
        "reinterpret as its own type",
        Looked("root", Reinterpret, X),
        _operand,
        lambda match: match.values["x"].type is match.result.type,
        "the bytes of x as its own type -> x",
    ),
    _both("reshape twice", Reshape, _reshaped, "reshape(reshape(x)) -> reshape(x)"),
    _both("permute twice", Permute, _permuted, "permute(permute(x, p), q) -> permute(x, p[q])"),
    _both("slice twice", Slice, _sliced, "x[a:b:s][c:d:t] -> x[a+s*c : ... : s*t]"),
    _both("expand twice", Expand, _expanded, "expand(expand(x)) -> expand(x)"),
    _both("reinterpret twice", Reinterpret, _reinterpreted, "the bytes of the bytes -> the bytes"),
    Rule(
        "permute of ones",
        Looked("root", Permute, X),
        _reshaped,
        _moves_ones,
        "permute(x) -> reshape(x), where only dimensions of one element move",
    ),
    Rule(
        "pointwise before reshape",
        Made("root", Pointwise, (Looked("view", Reshape, X, once=True),)),
        _before_view,
        _is_computed,
        "f(reshape(x)) -> reshape(f(x)), where x is computed",
    ),
    Rule(
        "pointwise before permute",
        Made("root", Pointwise, (Looked("view", Permute, X, once=True),)),
        _before_view,
        _is_computed,
        "f(permute(x)) -> permute(f(x)), where x is computed",
    ),
    Rule(
        "pointwise of two before permute",
        Made("root", Pointwise, (Looked("left", Permute, X), Looked("right", Permute, Any("y")))),
        _both_before,
        _alike,
        "f(permute(x), permute(y)) -> permute(f(x, y))",
    ),
    Rule(
        "pointwise of two before reshape",
        Made("root", Pointwise, (Looked("left", Reshape, X), Looked("right", Reshape, Any("y")))),
        _both_before,
        _alike,
        "f(reshape(x), reshape(y)) -> reshape(f(x, y)), where x and y have one shape",
    ),
    Rule(
        "pointwise between permutes",
        Looked("outer", Permute, Made("root", Pointwise, (Looked("view", Permute, X, once=True),), once=True)),
        _between,
        always,
        "permute(f(permute(x))) -> permute(permute(f(x)))",
    ),
    Rule(
        "slice of a part",
        Looked("root", Slice, Any("whole")),
        _part_of,
        _of_concatenation,
        "concat(x, y)[a:b] -> x[a:b], where the slice is in x",
    ),
    Rule(
        "concatenation of slices",
        Any("root"),
        _rejoined,
        lambda match: _concatenates(match) and _has_elements(match),
        "concat(x[:a], x[a:]) -> x",
    ),
    Rule(
        "concatenation twice",
        Any("root"),
        _flattened,
        _concatenates,
        "concat(concat(x, y), z) -> concat(x, y, z)",
    ),
)
