"""Prints matrix instructions of groups of four warps, which read both operands from shared memory by themselves."""

from __future__ import annotations

from dataclasses import replace

from tc.codegen.index.indices import values_of
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.matrices import statement_in
from tc.codegen.printer.printed import Facts, Printed, line, together
from tc.codegen.text.fragment import Fragment, filled, named, prefix
from tc.codegen.text.names import comment, loop_variable
from tc.language.program.program import IteratorReference
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import GroupMma, Guard, IndexLiteral, Loop, SharedMatrix

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
