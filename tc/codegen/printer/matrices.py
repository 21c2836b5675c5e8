"""Prints matrix instructions: the loads of fragments, and the products of all blocks of a warp.

A lane gives the address of one row of eight elements, for which ``ldmatrix`` finds the lanes that hold its elements:
row ``row`` of matrix ``matrix``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.codegen.index.indices import values_of
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Facts, Printed, line, together
from tc.codegen.text.fragment import Fragment, call, filled, infix, named, prefix
from tc.codegen.text.names import comment, loop_variable
from tc.language.program.program import IteratorReference
from tc.polyhedral.analysis.fold_index import AtValues
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir import loops
from tc.polyhedral.ir.index_arithmetic import minus, modulo, plus, quotient, times
from tc.polyhedral.ir.loops import (
    BLOCK,
    ELEMENT,
    REGISTER,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexVariable,
    Instance,
    Lay,
    Loop,
    LoopTree,
    Mma,
    SharedMatrix,
)

_ROW, _MATRIX, _STEPS = "row", "matrix", "steps"
_LEFT, _RIGHT = "left", "right"
# The iterators of the loops that are printed here.
_ITERATORS: Final = ("outer block", "inner block")
_OUTER, _INNER = map(IndexVariable, _ITERATORS)
# Registers of a lane for a block of the left and of the right factor.
REGISTERS: Final = {_LEFT: 4, _RIGHT: 2}
_LANES_OF_ROW: Final = 4
# Matrices of eight by eight elements that are loaded at once, at most.
_AT_ONCE: Final = 4


def matrix_instructions(context: Context, node: Mma, scope: Scope) -> Printed:
    """The lines for a node, which all lanes of a warp run together (``tc.polyhedral.proof.tensor.verify_matrices``)."""
    printer = _Matrices(context, node, scope, statement_in(node.nest))
    counts = {own.iterator: len(values_of(own)) for own in _loops(node.nest)}
    rows, columns = counts[node.rows] // 2, 1 if node.columns is None else counts[node.columns]
    x, y = (scope.variables[name] for name in node.lanes)
    index = context.dialect.index
    lines = (
        Printed([comment(statement_in(node.nest).statement)]),
        line("const {} {} = 4 * ({} % 2) + {};", index, named(_ROW), y, x),
        line("const {} {} = {} % 8 / 2;", index, named(_MATRIX), y),
        line("{0} {1}[{2}][4], {3}[{4}][2];", named("uint32_t"), named(_LEFT), rows, named(_RIGHT), columns),
        printer.loads(_LEFT, node.left, rows, 0),
        printer.loads(_RIGHT, node.right, columns, 1),
        *(() if node.limit is None else printer.without_further_steps(node.limit, {_LEFT: rows, _RIGHT: columns})),
        printer.products(rows, columns, 2),
    )
    return together(lines).braced().with_facts(Facts(exchanges=3))


@frozen
class _Matrices:
    context: Context
    node: Mma
    scope: Scope
    instance: Instance

    def number(self, exchange: int) -> int:
        """Of an exchange of values between lanes."""
        return len(self.context.barriers) + self.scope.exchanges + exchange

    def repeated(self, count: int, depth: int, body: Printed) -> Printed:
        """A loop that is unrolled."""
        name = self.text(depth)
        header = filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", self.context.dialect.index, name, count)
        unroll = self.context.dialect.unroll
        return body.braced(header).between([unroll.format(count=count)] if unroll and count > 1 else [])

    def text(self, depth: int) -> Fragment:
        """The name of its iterator in the text."""
        return named(loop_variable(self.scope.depth + depth))

    def inside(self, *counts: int) -> Scope:
        """The scope in loops of so many iterations, and with the row of a lane."""
        texts = {name: self.text(depth) for depth, name in enumerate(_ITERATORS)}
        variables = {**self.scope.variables, **texts, _ROW: named(_ROW), _MATRIX: named(_MATRIX)}
        ranges = {name: Range(0, count - 1) for name, count in zip(_ITERATORS, counts, strict=False)}
        ranges |= {_ROW: Range(0, 7), _MATRIX: Range(0, 3)}
        return replace(self.scope, variables=variables, ranges={**self.scope.ranges, **ranges})

    # --- loads

    def loads(self, name: str, fragment: loops.Fragment, blocks: int, exchange: int) -> Printed:
        """The loads of all blocks of a factor."""
        words = self.context.dialect.matrices
        assert words is not None, "only languages of machines with matrix instructions have these"
        registers = REGISTERS[name]
        if fragment.lay is Lay.APART:
            return self.apart(name, fragment, blocks)
        count = _AT_ONCE if blocks % (_AT_ONCE // registers) == 0 else registers
        together = count // registers
        scope = self.inside(blocks // together)
        held, fixed = self.held_by(fragment.lay, registers, together)
        place = self.place(fragment, held, fixed, scope)
        to = filled("{}[{}]", named(name), self.context.index(times(together, _OUTER), scope))
        own = line(
            words.columns if fragment.lay is Lay.COLUMNS else words.rows,
            count=count,
            to=to,
            source=prefix("&", place),
            number=self.number(exchange),
        )
        return self.repeated(blocks // together, 0, own)

    def held_by(self, lay: Lay, registers: int, together: int) -> tuple[dict[str, IndexExpression], dict[str, int]]:
        """Which lane has the first element of a row, and where: what is a number of its own is apart."""
        x, y = self.node.lanes
        row, matrix = IndexVariable(_ROW), IndexVariable(_MATRIX)
        left = registers == REGISTERS[_LEFT]
        group = times(8, quotient(IndexVariable(y), 8))
        held: dict[str, IndexExpression] = {
            REGISTER: matrix if left else modulo(matrix, registers),
            BLOCK: _OUTER if together == 1 else plus(times(together, _OUTER), quotient(matrix, registers)),
        }
        # Lanes hold the same of the right factor in all warps along y.
        match lay:
            case Lay.ROWS:
                return held | {y: plus(group, row) if left else row}, {x: 0, ELEMENT: 0}
            case Lay.COLUMNS:
                turned: dict[str, IndexExpression] = {x: quotient(row, 2), ELEMENT: modulo(row, 2)}
                return held | turned | ({y: group} if left else {}), {} if left else {y: 0}
            case Lay.APART:
                raise AssertionError("they are loaded one by one")
            case _:
                assert_never(lay)

    def apart(self, name: str, fragment: loops.Fragment, blocks: int) -> Printed:
        """Element by element, so many for each register."""
        registers = REGISTERS[name]
        scope, held = self.inside(blocks, registers), {BLOCK: _OUTER, REGISTER: _INNER}
        elements = self.node.shape.elements
        word, whole = named(f"uint{32 // elements}_t"), named("uint32_t")
        parts = [self.place(fragment, held, {ELEMENT: n}, scope) for n in range(elements)]
        shifted = [filled("({})({}){} << {}", whole, word, part, 32 // elements * n) for n, part in enumerate(parts)]
        if elements == 1:
            shifted = [call("tc_bits_of_float32", parts[0])]
        to = filled("{}[{}][{}]", named(name), self.text(0), self.text(1))
        own = line("{} = {};", to, reduce(lambda left, right: filled("{} | {}", left, right), shifted))
        return self.repeated(blocks, 0, self.repeated(registers, 1, own))

    def place(
        self, fragment: loops.Fragment, held: Mapping[str, IndexExpression], fixed: Mapping[str, int], scope: Scope
    ) -> Fragment:
        """An element of a fragment in memory."""
        names = [f"subscript{n}" for n in range(len(fragment.subscripts))]
        at = AtValues()
        values = (substituted(at(subscript, fixed), held) for subscript in fragment.subscripts)
        site = Site(self.instance.statement, dict(zip(names, values, strict=True)), scope.variables, None, scope.ranges)
        return self.context.expressions.location(fragment.tensor, tuple(map(IteratorReference, names)), site)

    def without_further_steps(self, limit: IndexExpression, blocks: Mapping[str, int]) -> Iterator[Printed]:
        """Zeros in the place of what is held for steps from the limit on."""
        index, context = self.context.dialect.index, self.context
        elements = self.node.shape.elements
        own = context.index(minus(limit, times(elements, IndexVariable(self.node.lanes[0]))), self.scope)
        yield line("const {} {} = {};", index, named(_STEPS), own)
        for name, registers in REGISTERS.items():
            # Those of the left factor are of two rows eight apart, and then of the other half of the steps.
            part = quotient(_INNER, registers // 2)
            scope = self.inside(blocks[name], registers)
            left = infix("-", named(_STEPS), context.index(times(_LANES_OF_ROW * elements, part), scope))
            kept = call(f"tc_first_of_{elements}", left)
            masked = line("{}[{}][{}] &= {};", named(name), self.text(0), self.text(1), kept)
            yield self.repeated(blocks[name], 0, self.repeated(registers, 1, masked))

    # --- products

    def products(self, rows: int, columns: int, exchange: int) -> Printed:
        """The instructions for all blocks."""
        words = self.context.dialect.matrices
        assert words is not None, "only languages of machines with matrix instructions have these"
        body = self.context.bodies[self.instance.statement]
        scope = self.inside(rows, columns)
        sums: list[Fragment] = []
        for half in (0, 1):
            for second in (0, 1):
                values: dict[str, IndexExpression] = {
                    self.node.rows: plus(times(2, _OUTER), IndexLiteral(half)),
                    self.node.pair: IndexLiteral(second),
                    self.node.steps: IndexLiteral(0),
                }
                if self.node.columns is not None:
                    values[self.node.columns] = _INNER
                arguments = tuple(substituted(own, values) for own in self.instance.arguments)
                site = self.context.site(replace(self.instance, arguments=arguments), scope)
                sums.append(self.context.expressions.location(body.target, body.subscripts, site))
        own = line(
            words.multiply[self.node.left.type, self.node.right.type],
            c0=prefix("&", sums[0]),
            c1=prefix("&", sums[1]),
            c2=prefix("&", sums[2]),
            c3=prefix("&", sums[3]),
            left=filled("{}[{}]", named(_LEFT), self.text(0)),
            right=filled("{}[{}]", named(_RIGHT), self.text(1)),
            number=self.number(exchange),
        )
        return self.repeated(rows, 0, self.repeated(columns, 1, own))


# --- groups of four warps, which read both operands from shared memory by themselves

_ZERO, _ONE = IndexLiteral(0), IndexLiteral(1)


def group_instructions(context: Context, node: GroupMma, scope: Scope) -> Printed:
    """The lines for a node (``tc.polyhedral.proof.tensor.verify_groups``)."""
    assert context.dialect.matrices is not None, "only languages of machines with matrix instructions have these"
    words = context.dialect.matrices.groups
    chunks = _chunks(node)
    inside = scope.inside(chunks)
    upper, lower = (_sum(context, node, inside, half) for half in (_ZERO, _ONE))
    left, right = (
        words.matrix.filled(
            first=prefix("&", _first(context, node, own, inside)), stride=own.stride, leading=own.leading
        )
        for own in (node.left, node.right)
    )
    number = len(context.barriers) + scope.exchanges
    key = (node.shape.n, node.left.type)
    turned = ", ".join(str(int(own.turned)) for own in (node.left, node.right))
    sums = {"upper": upper, "lower": lower}
    product = line(words.multiply[key], **sums, left=left, right=right, turned=turned, number=number)
    name, last = named(loop_variable(scope.depth)), context.index(chunks.upper, scope)
    header = filled("for ({0} {1} = 0; {1} <= {2}; {1} += 1)", context.dialect.index, name, last)
    repeated = product.braced(header)
    if context.dialect.unroll and isinstance(chunks.upper, IndexLiteral):
        repeated = repeated.between([context.dialect.unroll.format(count=len(values_of(chunks)))])
    lines = [Printed([comment(statement_in(node.nest).statement)]), line(words.begin), repeated, line(words.commit)]
    if node.awaited:
        lines.append(line(words.end))
    return together(lines).braced().with_facts(Facts(exchanges=1))


def _chunks(node: GroupMma) -> Loop:
    nest = node.nest
    while isinstance(nest, Guard):
        assert isinstance(nest.then, Loop | Guard), "guards of lanes stand around the nest of a group"
        nest = nest.then
    return nest


def _sum(context: Context, node: GroupMma, scope: Scope, half: IndexLiteral) -> Fragment:
    """The address of the first sum of a row; the others of the row are behind it, as the instruction has them."""
    instance = statement_in(node.nest)
    body = context.bodies[instance.statement]
    assert node.columns is not None, "groups have more than eight columns"
    first = {node.rows: half, node.columns: _ZERO, node.pair: _ZERO, node.steps: _ZERO}
    arguments = tuple(substituted(own, first) for own in instance.arguments)
    site = context.site(replace(instance, arguments=arguments), scope)
    return prefix("&", context.expressions.location(body.target, body.subscripts, site))


def _first(context: Context, node: GroupMma, matrix: SharedMatrix, scope: Scope) -> Fragment:
    """The first element of an operand, in a row of which the swizzle changes nothing."""
    names = [f"subscript{n}" for n in range(len(matrix.subscripts))]
    values = dict(zip(names, matrix.subscripts, strict=True))
    site = Site(statement_in(node.nest).statement, values, scope.variables, None, scope.ranges)
    return context.expressions.location(matrix.tensor, tuple(map(IteratorReference, names)), site)


def _loops(nest: LoopTree) -> Iterator[Loop]:
    """The loops of a nest, whatever guards stand between them: whole blocks are computed."""
    while isinstance(nest, Loop | Guard):
        if isinstance(nest, Loop):
            yield nest
        nest = nest.body if isinstance(nest, Loop) else nest.then


def statement_in(nest: LoopTree) -> Instance:
    """The one instance in a nest."""
    while isinstance(nest, Loop | Guard):
        nest = nest.body if isinstance(nest, Loop) else nest.then
    assert isinstance(nest, Instance), "matrix instructions run one statement"
    return nest
