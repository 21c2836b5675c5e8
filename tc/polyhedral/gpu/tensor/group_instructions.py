"""Nests of products become matrix instructions of groups of four warps (PTX ISA: ``wgmma``).

The lane of a thread is ``x + 4 * y + 32 * (z % 4)``, as ``tc.polyhedral.gpu.tensor.tile_shapes`` deals points out.
Both factors lie in swizzled shared memory, where their steps lie along rows, or count them, and instructions read them
by themselves.  ``tc.polyhedral.proof.tensor.verify_groups`` proves that
what they read there is what they multiply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tc.base.dots import MatrixShape
from tc.base.frozen import frozen
from tc.language.program.program import Read, iterators_in
from tc.polyhedral.analysis.offsets import LinearForm, index_form
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.gpu.tensor.nests import Around, asked_in, count_of, instance_of, loops_of, names_of
from tc.polyhedral.gpu.tensor.products import OPERANDS, factors_of, shape_of
from tc.polyhedral.gpu.tensor.tile_shapes import GROUP, GROUP_COLUMNS, GROUP_ROWS, PAIR, QUADS, WARPS
from tc.polyhedral.ir.index_arithmetic import quotient, times
from tc.polyhedral.ir.loops import (
    Buffer,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexVariable,
    Loop,
    LoopKind,
    SharedMatrix,
    variables,
)
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.swizzle import SWIZZLED_ROWS

_REPEATED: Final = (LoopKind.SEQUENTIAL, LoopKind.UNROLLED)
_ZERO: Final = IndexLiteral(0)
# Bytes, of which descriptors have a multiple also where it does not matter.
_PIECE: Final = 16


@frozen
class GroupInstructions:
    """Makes them of nests: a loop over instructions, and loops over what each of them adds up."""

    scop: Scop
    shapes: tuple[MatrixShape, ...]
    buffers: Mapping[str, Buffer]

    def instruction(self, nest: Loop, around: Around) -> GroupMma | None:
        """Those of a nest; None where it is no product of whole steps, or its factors lie otherwise."""
        lanes, instance = around.lanes, instance_of(nest.body) if isinstance(nest.body, Loop) else None
        if lanes is None or instance is None or nest.kind not in _REPEATED or nest.step != 1:
            return None
        body = self.scop.statement(instance.statement).body
        target, factors = self.buffers.get(body.target), factors_of(body, self.scop)
        if target is None or target.shared or factors is None:
            return None
        shape = shape_of(body, self.scop, target.layout.type, self.shapes)
        if shape is None or not all(self._is_swizzled(factor) for factor in factors):
            return None
        _, steps, *others = loops_of(nest)
        inside = {loop.iterator: count_of(loop) for loop in others}
        if count_of(steps) != shape.k or {nest.iterator, steps.iterator} & asked_in(nest):
            return None
        if nest.lower != _ZERO or around.depends(variables(nest.upper)):
            return None
        arguments = dict(zip(body.iterators, instance.arguments, strict=True))
        places = [tuple(arguments[name] for name in names_of(factor)) for factor in factors]
        roles = _roles(places, inside, lanes)
        if roles is None:
            return None
        x, y, z = lanes
        # How many rows further what counts those of an operand goes.
        of_left = {y: 1, roles.rows: GROUP, z: GROUP_ROWS}
        of_right = {roles.pair: 1, x: PAIR, roles.columns: PAIR * QUADS}
        along = (nest.iterator, steps.iterator)
        left = self._matrix(factors[roles.left], places[roles.left], of_left, along)
        right = self._matrix(factors[1 - roles.left], places[1 - roles.left], of_right, along)
        written = set[str]().union(*(variables(arguments[name]) for name in iterators_in(body.subscripts)))
        columns = PAIR * QUADS * (inside[roles.columns] or 0)
        if left is None or right is None or columns not in GROUP_COLUMNS or written & {nest.iterator, steps.iterator}:
            return None
        guarded: Loop | Guard = nest
        for condition in reversed(around.guards):
            guarded = Guard(condition, guarded, None)
        # All warps of a group name the first row of the group.
        group = times(WARPS, quotient(IndexVariable(z), WARPS))
        return GroupMma(
            replace(shape, m=WARPS * GROUP_ROWS, n=columns),
            lanes,
            guarded,
            roles.rows,
            roles.columns,
            roles.pair,
            steps.iterator,
            _at(left, {y: _ZERO, z: group, roles.rows: _ZERO, steps.iterator: _ZERO}),
            _at(right, dict.fromkeys((*of_right, steps.iterator), _ZERO)),
            nest.iterator,
        )

    def _is_swizzled(self, factor: Read) -> bool:
        buffer = self.buffers.get(factor.tensor)
        return buffer is not None and buffer.shared and buffer.swizzle is not None

    def _matrix(
        self, factor: Read, place: tuple[IndexExpression, ...], rows: Mapping[str, int], steps: tuple[str, str]
    ) -> SharedMatrix | None:
        """The operand; None where neither its steps nor its rows lie along those of the swizzle.

        ``rows``: how many rows further what counts them goes.
        """
        buffer, form = self.buffers[factor.tensor], LinearForm()
        swizzle, itemsize = buffer.swizzle, buffer.layout.type.itemsize
        assert swizzle is not None, "it was asked for"
        for subscript, stride in zip(place, buffer.layout.strides, strict=True):
            form = form.plus(index_form(subscript), stride * itemsize)
        turned = form.slope(steps[1]) != itemsize
        row, step = (itemsize, swizzle.row) if turned else (swizzle.row, itemsize)
        if any(form.slope(name) != further * row for name, further in rows.items()) or form.slope(steps[1]) != step:
            return None
        others = [factor for term, factor in form.factors.items() if not variables(term) & {*rows, *steps}]
        if any(number % (GROUP * swizzle.row) for number in (*others, form.constant)):
            return None
        leading = swizzle.panel if turned else _PIECE
        return SharedMatrix(factor.tensor, OPERANDS[factor.type], place, SWIZZLED_ROWS, leading, turned)


def _at(matrix: SharedMatrix, first: Mapping[str, IndexExpression]) -> SharedMatrix:
    """The operand from an element on."""
    return replace(matrix, subscripts=tuple(substituted(subscript, first) for subscript in matrix.subscripts))


@frozen
class _Roles:
    """Which loops of a nest count what; ``left``: which of the factors goes along the rows."""

    left: int
    rows: str
    columns: str
    pair: str


def _roles(
    places: list[tuple[IndexExpression, ...]], inside: Mapping[str, int | None], lanes: tuple[str, ...]
) -> _Roles | None:
    x, y, z = lanes
    uses = [frozenset[str]().union(*map(variables, place)) for place in places]
    if len(inside) != 3 or None in inside.values() or (x in uses[0]) == (x in uses[1]):
        return None
    left = 0 if x in uses[1] else 1
    of_left, of_right = (own & inside.keys() for own in (uses[left], uses[1 - left]))
    if {y, z} & uses[1 - left] or len(of_left) != 1 or len(of_right) != 2 or of_left & of_right:
        return None
    pair = list(inside)[-1]
    (rows,), (columns,) = of_left, of_right - {pair} or {""}
    whole = pair in of_right and inside[pair] == PAIR and inside[rows] == GROUP_ROWS // GROUP
    return _Roles(left, rows, columns, pair) if whole else None
