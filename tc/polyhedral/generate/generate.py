"""From a schedule tree to loops: isl generates the AST, which is copied into our own loop tree.

What isl decided is not trusted here: ``tc.polyhedral.proof.verify`` proves the loop tree itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from types import MappingProxyType
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.affine import Frame
from tc.language.program.specialization import Sizes
from tc.polyhedral.generate.leaves import PLAIN, Leaves
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.ir.tree import ScheduleTree, allocation_mark, marked_loop, to_isl

# By name: islpy's type stubs miss the members whose C names are Python keywords.
_OPERATORS: Final[Mapping[str, IndexOperator]] = {
    "add": IndexOperator.ADD,
    "sub": IndexOperator.SUBTRACT,
    "mul": IndexOperator.MULTIPLY,
    "minus": IndexOperator.NEGATE,
    "min": IndexOperator.MINIMUM,
    "max": IndexOperator.MAXIMUM,
    "div": IndexOperator.EXACT_DIVIDE,
    "fdiv_q": IndexOperator.FLOOR_DIVIDE,
    "pdiv_q": IndexOperator.NONNEGATIVE_DIVIDE,
    "pdiv_r": IndexOperator.NONNEGATIVE_REMAINDER,
    "zdiv_r": IndexOperator.ZERO_REMAINDER,
    "and_": IndexOperator.AND,
    "and_then": IndexOperator.AND,
    "or_": IndexOperator.OR,
    "or_else": IndexOperator.OR,
    "cond": IndexOperator.SELECT,
    "select": IndexOperator.SELECT,
    "eq": IndexOperator.EQUAL,
    "lt": IndexOperator.LESS,
    "le": IndexOperator.LESS_EQUAL,
    "gt": IndexOperator.GREATER,
    "ge": IndexOperator.GREATER_EQUAL,
}


def generate_loops(
    tree: ScheduleTree,
    context: isl.Context,
    buffers: Items[Buffer] = (),
    sizes: Sizes = (),
    leaves: Leaves = PLAIN,
) -> LoopTree:
    """The loops that run the tree's instances in the tree's order; ``buffers``: those that its extensions name.

    ``sizes``: those that the loops are run for.  ``leaves``: which nodes the instances become.
    """
    if tree.domain.is_empty():
        return Block(())
    context.set_ast_build_detect_min_max(1)
    context.set_ast_build_exploit_nested_bounds(1)
    context.set_ast_build_atomic_upper_bound(1)
    # One loop runs all statements below it: an allocation inside must not be there once for each of them.
    context.set_ast_build_group_coscheduled(1)
    build = isl.AstBuild.from_context(Frame(context, "", (), sizes=sizes).possible().params())
    node = build.node_from_schedule(to_isl(tree, context, leaves.barriers))
    return _Converter({allocation_mark(b.name): b for b in buffers}, leaves).convert(node, None, {})


@frozen
class _LoopMark:
    """The kind of the loop with so many members above it, after which isl names its iterator.

    Where isl leaves that loop out, the mark stands above others.
    """

    kind: LoopKind
    depth: int
    launched: int
    last: int | None

    @property
    def iterator(self) -> str:
        return f"c{self.depth}"


@frozen
class _Converter:
    """``allocations``: buffers by the mark that stands above the loops that use them."""

    allocations: Mapping[str, Buffer]
    leaves: Leaves

    def convert(self, node: isl.AstNode, mark: _LoopMark | None, known: Mapping[str, IndexExpression]) -> LoopTree:
        """``mark``: the one above; ``known`` maps iterators of loops that run once to their values."""
        match isl.ast_node_type(node.get_type()).name:
            case "for_":
                return self.loop(node, mark, known)
            case "if_":
                condition = index_expression(node.if_get_cond(), known)
                otherwise = self.convert(node.if_get_else_node(), mark, known) if node.if_has_else_node() else None
                return Guard(condition, self.convert(node.if_get_then_node(), mark, known), otherwise)
            case "block":
                children = node.block_get_children()
                count = children.n_ast_node()
                return Block(tuple(self.convert(children.get_ast_node(i), mark, known) for i in range(count)))
            case "mark":
                return self.marked(node.mark_get_id().get_name(), node.mark_get_node(), known)
            case "user":
                call = node.user_get_expr()
                arguments = (index_expression(call.get_op_arg(i), known) for i in range(1, call.get_op_n_arg()))
                return self.leaves.node(call.get_op_arg(0).get_id().get_name(), tuple(arguments))
            case other:
                raise AssertionError(f"isl generated an unexpected node: {other}")

    def marked(self, name: str, node: isl.AstNode, known: Mapping[str, IndexExpression]) -> LoopTree:
        buffer = self.allocations.get(name)
        if buffer is not None:
            return Allocation(buffer, self.convert(node, None, known))
        mark = _LoopMark(*marked_loop(name))
        if not mark.kind.is_mapped or _leads_to(node, mark.iterator):
            return self.convert(node, mark, known)
        # isl leaves out a loop over one value; the hardware has a first block and a first thread all the same.
        return _launched(mark.iterator, IndexLiteral(0), mark, self.convert(node, None, known))

    def loop(self, node: isl.AstNode, mark: _LoopMark | None, known: Mapping[str, IndexExpression]) -> LoopTree:
        name = node.for_get_iterator().get_id().get_name()
        lower = index_expression(node.for_get_init(), known)
        kind = LoopKind.SEQUENTIAL if mark is None or name != mark.iterator else mark.kind
        if node.for_is_degenerate() and not kind.is_mapped:
            return self.convert(node.for_get_body(), None, {**known, name: lower})
        inner = {other: value for other, value in known.items() if other != name}
        body = self.convert(node.for_get_body(), None, inner)
        step = index_expression(node.for_get_inc(), known)
        if node.for_is_degenerate():
            return Loop(name, lower, lower, 1, kind, body) if mark is None else _launched(name, lower, mark, body)
        if not isinstance(step, IndexLiteral) or step.value < 1:
            raise AssertionError(f"isl generated a loop with step {step}")
        upper = _upper_bound(node.for_get_cond(), name, known)
        if mark is not None and kind.is_mapped and lower == IndexLiteral(0) and step.value == 1:
            return _launched(name, upper, mark, body)
        return Loop(name, lower, upper, step.value, kind, body)


def _launched(name: str, upper: IndexExpression, mark: _LoopMark, body: LoopTree) -> Loop:
    """A loop over blocks or threads from 0 on; a guard keeps threads from its body that are launched beyond its end."""
    if mark.last is not None and isinstance(upper, IndexLiteral):  # beyond the last thread, nothing has an instance
        upper = IndexLiteral(min(upper.value, mark.last))
    last = IndexLiteral(mark.launched - 1)
    if not mark.launched or upper == last:
        return Loop(name, IndexLiteral(0), upper, 1, mark.kind, body)
    within = IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(name), upper))
    return Loop(name, IndexLiteral(0), last, 1, mark.kind, Guard(within, body, None))


def _leads_to(node: isl.AstNode, iterator: str) -> bool:
    """Whether the loop over an iterator comes next, or behind guards."""
    match isl.ast_node_type(node.get_type()).name:
        case "for_":
            return bool(node.for_get_iterator().get_id().get_name() == iterator)
        case "if_":
            return not node.if_has_else_node() and _leads_to(node.if_get_then_node(), iterator)
        case _:
            return False


def _upper_bound(condition: isl.AstExpr, name: str, known: Mapping[str, IndexExpression]) -> IndexExpression:
    """The inclusive upper bound of a loop from its condition ``name < e`` or ``name <= e``."""
    match index_expression(condition, known):
        case IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(left), right)) if left == name:
            return right
        case IndexOperation(IndexOperator.LESS, (IndexVariable(left), IndexLiteral(value))) if left == name:
            return IndexLiteral(value - 1)
        case IndexOperation(IndexOperator.LESS, (IndexVariable(left), right)) if left == name:
            return IndexOperation(IndexOperator.SUBTRACT, (right, IndexLiteral(1)))
        case other:
            raise AssertionError(f"isl generated a loop with the condition {other}")


def index_expression(
    expression: isl.AstExpr, known: Mapping[str, IndexExpression] = MappingProxyType({})
) -> IndexExpression:
    """An expression of isl's AST; ``known`` has the values of some of its variables."""
    match isl.ast_expr_type(expression.get_type()):
        case isl.ast_expr_type.int:
            return IndexLiteral(int(expression.get_val().to_python()))
        case isl.ast_expr_type.id:
            name = expression.get_id().get_name()
            return known.get(name, IndexVariable(name))
        case isl.ast_expr_type.op:
            operator = _OPERATORS[isl.ast_expr_op_type(expression.get_op_type()).name]
            count = expression.get_op_n_arg()
            operands = tuple(index_expression(expression.get_op_arg(i), known) for i in range(count))
            return IndexOperation(operator, operands)
        case other:
            raise AssertionError(f"isl generated an unexpected expression: {other}")
