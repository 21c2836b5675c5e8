"""From a schedule tree to loops: isl generates the AST, which is copied into our own loop tree.

What isl decided is not trusted here: ``tc.polyhedral.proof.verify`` proves the loop tree itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import field, replace
from itertools import groupby
from types import MappingProxyType
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.affine import Frame
from tc.language.program.specialization import Sizes
from tc.polyhedral.generate.leaves import PLAIN, Leaves
from tc.polyhedral.generate.repeats import Reduced, Twins, without_repeats
from tc.polyhedral.generate.schedule_text import to_isl, to_text
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
from tc.polyhedral.ir.tree import ScheduleTree, allocation_mark, marked_loop

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
    text = to_text(tree, leaves.barriers)

    def converted(reduced: Reduced) -> LoopTree:
        node = build.node_from_schedule(to_isl(reduced.tree, context))
        marks = {allocation_mark(buffer.name): buffer for buffer in buffers}
        return _Converter(marks, leaves, reduced.twins).convert(node, None, {})

    try:
        return converted(without_repeats(text, leaves.barriers))
    except _TwinsApartError:
        return converted(Reduced(text))


class _TwinsApartError(Exception):
    """isl took the branches of a sequence apart, so that those that are like them have no place of their own."""


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
class _Part:
    """A child of a block, and the guards around it."""

    guards: tuple[isl.AstExpr, ...]
    node: isl.AstNode


@frozen
class _Converter:
    """``allocations``: buffers by the mark that stands above the loops that use them.

    ``twins``: branches by the mark of the one that isl generated for all of them.  ``names``: what its statements and
    marks are called in the branch that is made.
    """

    allocations: Mapping[str, Buffer]
    leaves: Leaves
    twins: Mapping[str, Twins]
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

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
                nodes = [children.get_ast_node(i) for i in range(children.n_ast_node())]
                return Block(tuple(self.in_order(nodes, mark, known)))
            case "mark":
                name = _name(node)
                if name in self.twins:
                    branches = tuple(self.in_order([node], mark, known))
                    return branches[0] if len(branches) == 1 else Block(branches)
                return self.marked(self.names.get(name, name), node.mark_get_node(), known)
            case "user":
                call = node.user_get_expr()
                arguments = (index_expression(call.get_op_arg(i), known) for i in range(1, call.get_op_n_arg()))
                name = call.get_op_arg(0).get_id().get_name()
                return self.leaves.node(self.names.get(name, name), tuple(arguments))
            case other:
                raise AssertionError(f"isl generated an unexpected node: {other}")

    def in_order(
        self, nodes: Items[isl.AstNode], mark: _LoopMark | None, known: Mapping[str, IndexExpression]
    ) -> Iterator[LoopTree]:
        """The children of a block, and those that are like them, as they stand in their sequences."""
        parts = [part for node in nodes for part in self.parts(node, ())]
        runs = [(number, list(run)) for number, run in groupby(parts, self.sequence)]
        marks = [_name(part.node) for number, run in runs if number is not None for part in run]
        sequences = [number for number, _ in runs if number is not None]
        for part in parts:
            sequences += set(self.sequences(part.node)) if self.sequence(part) is None else ()
        if len(set(marks)) < len(marks) or len(set(sequences)) < len(sequences):
            raise _TwinsApartError
        for number, run in runs:
            if number is None:
                yield from (self.guarded(part, self.convert(part.node, mark, known), known) for part in run)
                continue
            made = [
                (twin.position, replace(self, names=self.renamed(twin.names)).branch(part, mark, known))
                for part in run
                for twin in self.twins[_name(part.node)].branches
            ]
            yield from _joined(tree for _, tree in sorted(made, key=lambda own: own[0]))

    def parts(self, node: isl.AstNode, guards: tuple[isl.AstExpr, ...]) -> Iterator[_Part]:
        """A child of a block; of guards around branches that have others like them, each branch with its own guards."""
        if not self.twins or not self.holds_twins(node):
            yield _Part(guards, node)
            return
        match isl.ast_node_type(node.get_type()).name:
            case "if_":
                yield from self.parts(node.if_get_then_node(), (*guards, node.if_get_cond()))
            case "block" if guards:
                children = node.block_get_children()
                for position in range(children.n_ast_node()):
                    yield from self.parts(children.get_ast_node(position), guards)
            case _:
                yield _Part(guards, node)

    def holds_twins(self, node: isl.AstNode) -> bool:
        """Whether the mark of such a branch comes next, or behind guards."""
        match isl.ast_node_type(node.get_type()).name:
            case "mark":
                return _name(node) in self.twins
            case "if_":
                return not node.if_has_else_node() and self.holds_twins(node.if_get_then_node())
            case "block":
                children = node.block_get_children()
                return any(self.holds_twins(children.get_ast_node(n)) for n in range(children.n_ast_node()))
            case _:
                return False

    def sequences(self, node: isl.AstNode) -> Iterator[int]:
        """Those of which some branches are in the node, such as in both sides of a condition.

        Loops around branches are around all branches of their sequence.
        """
        if not self.twins:
            return
        match isl.ast_node_type(node.get_type()).name:
            case "mark":
                if _name(node) in self.twins:
                    yield self.twins[_name(node)].sequence
                yield from self.sequences(node.mark_get_node())
            case "if_":
                yield from self.sequences(node.if_get_then_node())
                if node.if_has_else_node():
                    yield from self.sequences(node.if_get_else_node())
            case "block":
                children = node.block_get_children()
                for position in range(children.n_ast_node()):
                    yield from self.sequences(children.get_ast_node(position))
            case _:
                return

    def sequence(self, part: _Part) -> int | None:
        """That of the branches that the part stands for."""
        if isl.ast_node_type(part.node.get_type()).name != "mark" or _name(part.node) not in self.twins:
            return None
        return self.twins[_name(part.node)].sequence

    def branch(self, part: _Part, mark: _LoopMark | None, known: Mapping[str, IndexExpression]) -> LoopTree:
        """What is below the mark of branches that are alike, below their guards."""
        return self.guarded(part, self.convert(part.node.mark_get_node(), mark, known), known)

    def guarded(self, part: _Part, tree: LoopTree, known: Mapping[str, IndexExpression]) -> LoopTree:
        """What the part became, below its guards."""
        for guard in reversed(part.guards):
            tree = Guard(index_expression(guard, known), tree, None)
        return tree

    def renamed(self, names: Mapping[str, str]) -> Mapping[str, str]:
        """The names of a branch within the one that is made."""
        return {**self.names, **{old: self.names.get(new, new) for old, new in names.items()}}

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


def _joined(trees: Iterable[LoopTree]) -> Iterator[LoopTree]:
    """Children of a block, with one guard around those that follow each other and have the same one, as isl has it."""
    for condition, run in groupby(trees, _condition):
        if condition is None:
            yield from run
            continue
        first, *others = (tree.then for tree in run if isinstance(tree, Guard))
        if others:
            flat = (p for then in (first, *others) for p in (then.children if isinstance(then, Block) else (then,)))
            first = Block(tuple(_joined(flat)))
        yield Guard(condition, first, None)


def _condition(tree: LoopTree) -> IndexExpression | None:
    """That under which all of it runs."""
    return tree.condition if isinstance(tree, Guard) and tree.otherwise is None else None


def _name(mark: isl.AstNode) -> str:
    return str(mark.mark_get_id().get_name())


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
