"""Loop trees as text, for dumps: a line for each node, what is inside of it further to the right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    Copy,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopTree,
    Mma,
    Prefetch,
    Use,
)
from tc.polyhedral.ir.streams import Stream

_FUNCTIONS: Final = {
    IndexOperator.MINIMUM: "min",
    IndexOperator.MAXIMUM: "max",
    IndexOperator.FLOOR_DIVIDE: "floordiv",
}
_INFIX: Final = {
    IndexOperator.EXACT_DIVIDE: "/",
    IndexOperator.NONNEGATIVE_DIVIDE: "/",
    IndexOperator.NONNEGATIVE_REMAINDER: "%",
    IndexOperator.ZERO_REMAINDER: "%",
}


def loop_text(root: LoopTree) -> str:
    """The tree, from its first line to its last."""
    return "\n".join(_lines(root, ""))


def _lines(tree: LoopTree, indent: str) -> Iterator[str]:
    match tree:
        case Loop():
            yield f"{indent}{_loop(tree)}"
            yield from _lines(tree.body, f"{indent}  ")
            for fold in tree.folds:
                yield f"{indent}  every {fold.every}: partial sums of {fold.statement} to their total"
        case Guard(condition, then, otherwise):
            yield f"{indent}if {index_text(condition)}"
            yield from _lines(then, f"{indent}  ")
            if otherwise is not None:
                yield f"{indent}else"
                yield from _lines(otherwise, f"{indent}  ")
        case Block(children):
            for child in children:
                yield from _lines(child, indent)
        case Allocation(buffer, body):
            yield f"{indent}{_buffer(buffer)}"
            yield from _lines(body, f"{indent}  ")
        case Copy():
            asynchronous = "" if tree.group is None else f", asynchronous: awaited at {tree.group}"
            gather = "" if tree.gathers_for is None else f", gathers for {tree.gathers_for}"
            yield f"{indent}copy {_instance(tree)}{asynchronous}{gather}"
        case Instance():
            yield f"{indent}{_instance(tree)}"
        case Barrier(statement, arguments, pending, fenced):
            fence = ", fenced for matrix instructions" if fenced else ""
            left = "" if pending is None else f", all groups of copies but {pending} awaited"
            yield f"{indent}barrier {statement}({_listed(arguments)}){left}{fence}"
        case Mma():
            operands = ", ".join(f"{own.tensor} in {own.lay.value}" for own in (tree.left, tree.right))
            yield f"{indent}matrix instructions m{tree.shape.m}n{tree.shape.n}k{tree.shape.k} of {operands}"
            yield from _lines(tree.nest, f"{indent}  ")
        case GroupMma():
            operands = ", ".join(own.tensor for own in (tree.left, tree.right))
            shape = f"m{tree.shape.m}n{tree.shape.n}k{tree.shape.k}"
            awaited = "" if tree.awaited else ", awaited at the next barrier"
            yield f"{indent}matrix instructions {shape} of {operands}, swizzled, by groups of warps{awaited}"
            yield from _lines(tree.nest, f"{indent}  ")
        case Prefetch(tensor, offset, lines, use):
            count = "1 line" if lines == 1 else f"{lines} lines"
            why = "" if use is Use.LATER else f", {use.value}"
            yield f"{indent}prefetch {tensor}[{index_text(offset)}], {count}{why}"
        case _:
            assert_never(tree)


def _loop(loop: Loop) -> str:
    step = "" if loop.step == 1 else f" step {loop.step}"
    totals = "".join(f", total of {total.statement}" for total in loop.totals)
    bounds = f"{index_text(loop.lower)} .. {index_text(loop.upper)}"
    stream = "" if loop.stream is None else f", {_stream(loop.stream)}"
    return f"{loop.kind.value} {loop.iterator} = {bounds}{step}{totals}{stream}"


def _stream(stream: Stream) -> str:
    boxes = ", ".join(f"{own.buffer} {'x'.join(map(str, own.box))}" for own in stream.boxes)
    return f"a stream of {stream.tiles} tiles in {stream.slots} slots, filled by a thread of its own with {boxes}"


def _buffer(buffer: Buffer) -> str:
    extents = ", ".join(map(str, buffer.layout.shape))
    swizzled = ", swizzled" if buffer.swizzle else ""
    return f"{buffer.layout.type.value} {buffer.name}[{extents}], one for each {buffer.sharing.value}{swizzled}"


def _instance(instance: Instance) -> str:
    stored = ", non-temporal" if instance.nontemporal else ""
    ahead = f", gathers of ({_listed(instance.prefetched)}) prefetched" if instance.prefetched else ""
    return f"{instance.statement}({_listed(instance.arguments)}){stored}{ahead}"


def _listed(expressions: Iterable[IndexExpression]) -> str:
    return ", ".join(map(index_text, expressions))


def index_text(expression: IndexExpression) -> str:
    """An index expression; operations inside of others are in parentheses, but products and sums of them."""
    match expression:
        case IndexLiteral(value):
            return str(value)
        case IndexVariable(name):
            return name
        case IndexOperation(operator, operands) if operator in _FUNCTIONS:
            return f"{_FUNCTIONS[operator]}({_listed(operands)})"
        case IndexOperation(IndexOperator.NEGATE, (operand,)):
            return f"-{_operand(operand)}"
        case IndexOperation(IndexOperator.SELECT, (condition, then, otherwise)):
            return f"{_operand(condition)} ? {_operand(then)} : {_operand(otherwise)}"
        case IndexOperation(IndexOperator.ADD, (left, right)):
            return f"{index_text(left) if _is_sum(left) else _operand(left)} + {_operand(right)}"
        case IndexOperation(operator, (left, right)):
            return f"{_operand(left)} {_INFIX.get(operator, operator.value)} {_operand(right)}"
        case IndexOperation():
            raise AssertionError("an operator has as many operands as it takes")
        case _:
            assert_never(expression)


def _is_sum(expression: IndexExpression) -> bool:
    return isinstance(expression, IndexOperation) and expression.operator is IndexOperator.ADD


def _operand(expression: IndexExpression) -> str:
    text = index_text(expression)
    bare = not isinstance(expression, IndexOperation) or expression.operator in (*_FUNCTIONS, IndexOperator.MULTIPLY)
    return text if bare else f"({text})"
