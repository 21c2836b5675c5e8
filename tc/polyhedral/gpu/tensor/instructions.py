"""Nests of products become matrix instructions, where whole warps run all of a block of them.

The lane of a thread is ``x + 4 * (y % 8)``, as ``tc.polyhedral.gpu.tensor.tile_shapes`` deals points out.  A lane holds
elements of the left factor in its own row, ``y % 8`` of eight, at steps that ``x`` says; and of the right one in the
column that its row says.  ``tc.polyhedral.proof.tensor.verify_matrices`` proves that these are what the instruction
multiplies.
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
from tc.polyhedral.gpu.tensor.group_instructions import GroupInstructions
from tc.polyhedral.gpu.tensor.nests import (
    Around,
    Finder,
    asked_in,
    count_of,
    instance_of,
    loops_of,
    names_of,
)
from tc.polyhedral.gpu.tensor.overlapping import overlapping
from tc.polyhedral.gpu.tensor.products import OPERANDS, factors_of, shape_of
from tc.polyhedral.gpu.tensor.tile_shapes import GROUP, PAIR, QUADS
from tc.polyhedral.ir.index_arithmetic import modulo, plus, quotient, times
from tc.polyhedral.ir.loops import (
    BLOCK,
    ELEMENT,
    REGISTER,
    Buffer,
    Fragment,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Lay,
    Loop,
    LoopKind,
    LoopTree,
    Mma,
    variables,
)
from tc.polyhedral.ir.scop import Scop

_REPEATED: Final = (LoopKind.SEQUENTIAL, LoopKind.UNROLLED, LoopKind.REDUCTION)


def matrix_instructions(
    root: LoopTree, scop: Scop, shapes: tuple[MatrixShape, ...], *, groups: bool = False
) -> LoopTree:
    """The loops with matrix instructions in the place of nests that run all products of blocks.

    ``groups``: where four warps can, they run some together.
    """
    buffers = {promotion.buffer.name: promotion.buffer for promotion in scop.promotions}
    if not (shapes and buffers):
        return root
    if groups:
        root = overlapping(Finder(GroupInstructions(scop, shapes, buffers).instruction).visit(root, Around(3)))
    return Finder(_WarpInstructions(scop, shapes, buffers).of_one).visit(root, Around(2))


@frozen
class _WarpInstructions:
    scop: Scop
    shapes: tuple[MatrixShape, ...]
    buffers: Mapping[str, Buffer]

    def of_one(self, nest: Loop, around: Around) -> LoopTree | None:
        """Those of one statement.  Where there may be fewer steps than an instruction takes, it is another one."""
        match nest.upper:
            case IndexOperation(IndexOperator.MINIMUM, (IndexLiteral() as last, other)):
                whole = self.instruction(replace(nest, upper=last), around)
                rest = self.instruction(nest, around)
                if whole is None or rest is None:
                    return None
                return Guard(IndexOperation(IndexOperator.LESS_EQUAL, (last, other)), whole, rest)
            case _:
                return self.instruction(nest, around)

    def instruction(self, nest: Loop, around: Around) -> Mma | None:
        """One that takes the steps of a nest as they are."""
        lanes, loops, instance = around.lanes, list(loops_of(nest)), instance_of(nest)
        if lanes is None or nest.kind not in _REPEATED or instance is None:
            return None
        body = self.scop.statement(instance.statement).body
        target = self.buffers.get(body.target)
        factors = factors_of(body, self.scop)
        if target is None or target.shared or factors is None:
            return None
        shape = shape_of(body, self.scop, target.layout.type, self.shapes)
        if shape is None or not all(self._is_shared(factor) for factor in factors):
            return None
        arguments = dict(zip(body.iterators, instance.arguments, strict=True))
        inside = {loop.iterator: count_of(loop) for loop in loops if loop is not nest}
        steps, limit = count_of(nest), None
        if steps != shape.k:
            limit = plus(nest.upper, IndexLiteral(1))
        mentioned = variables(nest.upper)
        if nest.lower != IndexLiteral(0) or nest.step != 1 or around.depends(mentioned) or mentioned & inside.keys():
            return None
        if None in inside.values() or (steps or 0) > shape.k or nest.iterator in asked_in(nest):
            return None
        places = [tuple(arguments[name] for name in names_of(factor)) for factor in factors]
        written = frozenset[str]().union(*(variables(arguments[name]) for name in iterators_in(body.subscripts)))
        roles = _roles(places, nest.iterator, inside, lanes, written)
        if roles is None:
            return None
        left, right = factors if roles.left == 0 else factors[::-1]
        held = _Steps(nest.iterator, shape.elements)
        guarded: Loop | Guard = nest
        for condition in reversed(around.guards):
            guarded = Guard(condition, guarded, None)
        return Mma(
            shape,
            lanes,
            guarded,
            roles.rows,
            roles.columns,
            roles.pair,
            nest.iterator,
            self.fragment(shape, left, places[roles.left], _of_left(roles, held, lanes), (lanes[1],)),
            self.fragment(shape, right, places[1 - roles.left], _of_right(roles, held, lanes), (lanes[0], roles.pair)),
            limit,
        )

    def _is_shared(self, factor: Read) -> bool:
        buffer = self.buffers.get(factor.tensor)
        return buffer is not None and buffer.shared

    def fragment(
        self,
        shape: MatrixShape,
        factor: Read,
        place: tuple[IndexExpression, ...],
        held: Mapping[str, IndexExpression],
        across: tuple[str, ...],
    ) -> Fragment:
        """What lanes hold of a factor; ``across``: what counts its rows or columns, the fastest one last."""
        form = LinearForm()
        layout = self.buffers[factor.tensor].layout
        for subscript, stride in zip(place, layout.strides, strict=True):
            form = form.plus(index_form(subscript), stride)
        return Fragment(
            factor.tensor,
            OPERANDS.get(factor.type, shape.operands),
            tuple(substituted(own, held) for own in place),
            _lay(form, self._steps(held), across, shape.elements),
        )

    def _steps(self, held: Mapping[str, IndexExpression]) -> str:
        return next(name for name, value in held.items() if ELEMENT in variables(value))


@frozen
class _Roles:
    """Which loops of a nest count what; ``left``: which of the factors goes along the rows."""

    left: int
    rows: str
    columns: str | None
    pair: str


def _roles(
    places: list[tuple[IndexExpression, ...]],
    steps: str,
    inside: Mapping[str, int | None],
    lanes: tuple[str, ...],
    written: frozenset[str],
) -> _Roles | None:
    x, y = lanes
    uses = [frozenset().union(*map(variables, place)) for place in places]
    if (x in uses[0]) == (x in uses[1]):
        return None
    left = 0 if x in uses[1] else 1
    of_left, of_right = (own & inside.keys() for own in (uses[left], uses[1 - left]))
    others = list(inside)
    if y in uses[1 - left] or of_left & of_right or of_left | of_right != frozenset(others) or steps in written:
        return None
    if not all(steps in own for own in uses) or len(of_left) != 1 or len(of_right) not in (1, 2):
        return None
    (rows,), pair = of_left, others[-1]
    columns = next(iter(of_right - {pair}), None)
    row_count = inside[rows]
    if pair not in of_right or inside[pair] != PAIR or row_count is None or row_count % 2:
        return None
    return _Roles(left, rows, columns, pair)


@frozen
class _Steps:
    """The iterator of the steps, of which a register holds so many ``elements``."""

    iterator: str
    elements: int

    def held(self, part: IndexExpression, x: str) -> IndexExpression:
        """The step of an element of a lane: parts are those that all lanes have together."""
        own = plus(times(self.elements, IndexVariable(x)), IndexVariable(ELEMENT))
        return plus(times(QUADS * self.elements, part), own)


def _of_left(roles: _Roles, steps: _Steps, lanes: tuple[str, ...]) -> dict[str, IndexExpression]:
    """What a lane holds of the left factor, by the iterators that say what it is."""
    block, register = map(IndexVariable, (BLOCK, REGISTER))
    return {
        roles.rows: plus(times(2, block), modulo(register, 2)),
        steps.iterator: steps.held(quotient(register, 2), lanes[0]),
    }


def _of_right(roles: _Roles, steps: _Steps, lanes: tuple[str, ...]) -> dict[str, IndexExpression]:
    """What a lane holds of the right factor."""
    x, y = lanes
    block, register = map(IndexVariable, (BLOCK, REGISTER))
    column = modulo(IndexVariable(y), GROUP)
    held: dict[str, IndexExpression] = {} if roles.columns is None else {roles.columns: block}
    return held | {
        x: quotient(column, 2),
        roles.pair: modulo(column, 2),
        steps.iterator: steps.held(register, x),
    }


def _lay(form: LinearForm, steps: str, across: tuple[str, ...], elements: int) -> Lay:
    """How the elements of eight rows lie in shared memory; what is loaded at once begins at a multiple of 16 bytes.

    ``elements``: in a register.  Only those of two bytes are loaded by columns.
    """
    if form.slope(steps) == 1:
        own: Mapping[str, int] = {steps: 1}
    elif elements == PAIR and [form.slope(name) for name in across] == ([1] if len(across) == 1 else [2, 1]):
        own = dict(zip(across, (1,) if len(across) == 1 else (2, 1), strict=True))
    else:
        return Lay.APART
    others = [factor for term, factor in form.factors.items() if not variables(term) & own.keys()]
    if any(number % (QUADS * elements) for number in (*others, form.constant)):
        return Lay.APART
    return Lay.ROWS if steps in own else Lay.COLUMNS
