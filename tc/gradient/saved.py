"""Which values of the forward a gradient is given, and which it computes again: a minimum cut over bytes.

What one element is computed from by itself is computed again; reductions, and the steps of blocks, never are.  Of all
sets of values from which the rest follows so, the one with the fewest bytes is taken (compare the recomputation by
minimum cut of PyTorch's AOTAutograd).  Arguments and results are there anyhow, and count once, as they are read; what
is kept besides is also written, and takes memory until it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tc.gradient.reads import read_by
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Call, Expression, Literal, Program, Statement, Tensor
from tc.language.program.written_elements import is_scatter

# What stands for a size, which only a call knows.
_SIZE: Final = 16
# How often bytes count that are kept beside arguments and results: written, read, and held.
_KEPT: Final = 4
# Capacities and their sums are int32; a path of this one is never cut.
_ENDLESS: Final = 1 << 30
_MOST: Final = 1 << 22


def smallest_cut(program: Program, forward: Sequence[str], free: Collection[str], needed: Collection[str]) -> set[str]:
    """The values to take over, of a program that computes a forward and its gradient.

    ``forward``: the tensors that the forward computes.  ``free``: those that are there anyhow, as its results are.
    ``needed``: those that the gradient reads.
    """
    written = _written(program)
    given = [tensor.name for tensor in program.tensors if tensor.name not in written]
    place = {name: 2 * number for number, name in enumerate((*given, *forward))}
    source, sink = 2 * len(place), 2 * len(place) + 1
    edges: dict[tuple[int, int], int] = {}
    for name, begin in place.items():
        is_there = name in free or name not in written
        edges[begin, begin + 1] = _bytes(program.tensor(name)) * (1 if is_there else _KEPT)
        if name not in written or not all(map(_is_pointwise, written[name])):
            edges[source, begin] = _ENDLESS
        operands = {read for statement in written.get(name, ()) for read in read_by(statement)}
        for operand in operands & place.keys() - {name}:
            edges[place[operand] + 1, begin] = _ENDLESS
        if name in needed:
            edges[begin + 1, sink] = _ENDLESS
    behind = _behind_the_cut(edges, source, sink)
    return {name for name in forward if place[name] + 1 in behind and place[name] not in behind}


def _written(program: Program) -> Mapping[str, list[Statement]]:
    found: dict[str, list[Statement]] = {}
    for statement in program.statements:
        found.setdefault(statement.target, []).append(statement)
    return found


def _is_pointwise(statement: Statement) -> bool:
    return statement.reduction is None and not statement.blocks and not is_scatter(statement)


def _behind_the_cut(edges: Mapping[tuple[int, int], int], source: int, sink: int) -> set[int]:
    """The nodes on the sink's side of the minimum cut that is next to the sink."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    size = sink + 1
    rows, columns = [row for row, _ in edges], [column for _, column in edges]
    capacities = csr_array((list(edges.values()), (rows, columns)), shape=(size, size), dtype="int32")
    residual = capacities - maximum_flow(capacities, source, sink).flow
    residual.eliminate_zeros()
    return set(map(int, breadth_first_order(residual.T, sink, return_predecessors=False)))


def _bytes(tensor: Tensor) -> int:
    found = tensor.type.itemsize
    for extent in tensor.shape:
        found *= max(1, _elements(extent))
    return min(found, _MOST)


def _elements(extent: Expression) -> int:
    """About how many: a difference counts as what something is taken from."""
    match extent:
        case Literal(value):
            return int(value)
        case Binary(BinaryOperator.ADD, left, right):
            return _elements(left) + _elements(right)
        case Binary(BinaryOperator.SUBTRACT, left):
            return _elements(left)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            return _elements(left) * _elements(right)
        case Binary(BinaryOperator.DIVIDE, left, right):
            return _elements(left) // max(1, _elements(right))
        case Call("max", arguments):
            return max(map(_elements, arguments))
        case _:
            return _SIZE


def dependent_on(program: Program, names: Collection[str]) -> set[str]:
    """The tensors that depend on some arguments, these among them."""
    found = set(names)
    size = 0
    while size < len(found):  # steps of a block depend on each other in any order
        size = len(found)
        for statement in program.statements:
            if found & set(read_by(statement)):
                found.add(statement.target)
    return found
