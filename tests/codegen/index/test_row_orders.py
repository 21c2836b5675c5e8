"""The order of the rows of a register tile: that which leaves registers for the tile."""

from __future__ import annotations

import itertools

import numpy as np

import tc
from tc.codegen.index.row_orders import nested, row_order
from tc.polyhedral.ir.loops import Loop, LoopKind
from tests.codegen.build import instance, loops


def rows(**extents: int) -> list[Loop]:
    """Loops over rows, one inside of the other."""
    tree = loops([(name, extent, LoopKind.REGISTER) for name, extent in extents.items()], instance("S"))
    found: list[Loop] = []
    while isinstance(tree, Loop):
        found.append(tree)
        tree = tree.body
    return found


def order(room: int, extents: dict[str, int], *operands: tuple[str, int]) -> str:
    given = [(frozenset(names), registers) for names, registers in operands]
    return "".join(loop.iterator for loop in row_order(rows(**extents), given, room))


def test_what_few_need_again_is_outside() -> None:
    # Six numbers would be needed for both vectors; two vectors for each of six numbers.
    assert order(4, {"g": 2, "l": 6}, ("l", 1), ("g", 1)) == "lg"
    assert order(7, {"g": 2, "l": 6}, ("l", 1), ("g", 1)) == "gl"  # there is room
    assert order(4, {"l": 6, "g": 2}, ("l", 1), ("g", 1)) == "lg"
    # Three numbers take fewer registers than three pairs of vectors.
    assert order(3, {"l": 3, "g": 3}, ("l", 1), ("g", 2)) == "gl"
    # Each row has operands of its own: no order is better.
    assert order(1, {"g": 2, "l": 6}, ("gl", 1), ("gl", 2)) == "gl"
    assert order(1, {"a": 2, "b": 3, "c": 2}, ("ac", 1), ("b", 1)) in {"acb", "cab"}


def test_no_order_needs_fewer_registers() -> None:
    def needed(word: str, operands: tuple[tuple[str, int], ...], extents: dict[str, int]) -> int:
        """The greatest number of registers that hold what later rows read, too, or this one does."""
        places = [dict(zip(word, at, strict=True)) for at in itertools.product(*(range(extents[n]) for n in word))]
        reads = [
            [(number, *(place[n] for n in names)) for number, (names, _) in enumerate(operands)] for place in places
        ]
        most = 0
        for now in range(len(reads)):
            live = {own for row in reads[: now + 1] for own in row if any(own in later for later in reads[now:])}
            most = max(most, sum(operands[own[0]][1] for own in live))
        return most

    random = np.random.default_rng(0)
    for _ in range(200):
        extents = {name: int(random.integers(2, 5)) for name in "abc"}
        operands = tuple(
            ("".join(name for name in "abc" if random.random() < 0.5), int(random.integers(1, 3))) for _ in range(2)
        )
        found = order(0, extents, *operands)
        least = min(needed("".join(word), operands, extents) for word in itertools.permutations("abc"))
        assert needed(found, operands, extents) == least, (found, extents, operands)


def test_groups_beside_rows_are_inside_of_them() -> None:
    """Twelve rows of which two share a number take sixteen registers only if these follow each other."""
    f = tc.define("def m(float(L,C) V, float(G,C,J) K) -> (M) { M(g,l,j) +=! V(l,c) * K(g,c,j) }").single()
    options = tc.CpuOptions(register_tile=(2, 6, 8))
    random = np.random.default_rng(0)
    v, k = (random.standard_normal(shape).astype(np.float32) for shape in ((13, 5), (3, 5, 8)))
    np.testing.assert_allclose(np.asarray(f(v, k, options=options)), f.reference(v, k), rtol=1e-5)
    text = f.compile(v.shape, k.shape, target="cpu:x86-64-v3", options=options).source
    lines = [line.split("+=")[1].strip() for line in text.splitlines() if "M_" in line and "t_V[" in line]
    assert lines[0].split(" * ")[0] == lines[1].split(" * ")[0]
    wide = f.compile(v.shape, k.shape, target="cpu:x86-64-v4", options=options).source
    lines = [line.split("+=")[1].strip() for line in wide.splitlines() if "M_" in line and "t_V[" in line]
    assert lines[0].split(" * ")[0] != lines[1].split(" * ")[0]


def test_loops_are_put_inside_of_each_other() -> None:
    outer, inner = rows(a=2, b=3)
    lanes = loops([("c", 8, LoopKind.VECTOR)], instance("S"))
    assert isinstance(lanes, Loop)
    tree = nested((inner, outer), lanes)
    assert (tree.iterator, tree.upper) == ("b", inner.upper)
    assert isinstance(tree.body, Loop)
    assert (tree.body.iterator, tree.body.body) == ("a", lanes)
