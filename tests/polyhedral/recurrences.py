"""Specialized programs with blocks, made by hand: what the polyhedral core must make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.language.program.program import Role
from tc.language.program.specialization import Specialization
from tests.reference.build import binary, literal, read, specialize, statement, tensor

_X, _W, _U = tensor("X", "int32", (3, 1, 2)), tensor("W", "int32", (2, 2)), tensor("U", "int32", (2, 2))
_H = tensor("H", "int32", (4, 1, 2), Role.OUTPUT)


def _sums() -> Specialization:
    """``y(n,i+1) = y(n,i) + x(n,i)``, row by row."""
    x, y = tensor("x", "int32", (3, 5)), tensor("y", "int32", (3, 6), Role.OUTPUT)
    rows, value = {"n": (0, 3)}, binary(read(y, "n", "i"), "+", read(x, "n", "i"))
    return specialize(
        [x, y],
        [
            statement(y, ["n", 0], rows, literal(0, "int32"), name="S0"),
            statement(y, ["n", binary("i", "+", 1)], {"i": (0, 5), **rows}, value, blocks=(0,), name="S1"),
        ],
    )


def _network(*, keeps_steps: bool) -> Specialization:
    """A recurrent network; ``keeps_steps``: whether its temporary has an element for every step."""
    z = tensor("z", "int32", (3, 1, 2) if keeps_steps else (1, 2), Role.TEMPORARY)
    place = ["t", "b", "i"] if keeps_steps else ["b", "i"]
    step, element = {"t": (0, 3)}, {"b": (0, 1), "i": (0, 2)}
    inputs = binary(read(_X, "t", "b", "k"), "*", read(_W, "k", "i"))
    states = binary(read(_H, "t", "b", "j"), "*", read(_U, "j", "i"))
    own = step | element
    return specialize(
        [_X, _W, _U, z, _H],
        [
            statement(_H, [0, "b", "i"], element, literal(1, "int32"), name="S0"),
            statement(z, place, {**own, "k": (0, 2)}, inputs, "+", initialize=True, blocks=(0,), name="S1"),
            statement(z, place, {**own, "j": (0, 2)}, states, "+", blocks=(0,), name="S2"),
            statement(_H, [binary("t", "+", 1), "b", "i"], own, read(z, *place), blocks=(0,), name="S3"),
        ],
    )


def _sweeps() -> Specialization:
    """Gauss-Seidel: blocks in a block, and a statement between them."""
    f, u = tensor("f", "int32", (7,)), tensor("u", "int32", (7,), Role.OUTPUT)
    n = tensor("n", "int32", (3,), Role.OUTPUT)
    neighbours = binary(read(u, binary("i", "-", 1)), "+", read(u, binary("i", "+", 1)))
    return specialize(
        [f, u, n],
        [
            statement(u, ["i"], {"i": (0, 7)}, read(f, "i"), name="S0"),
            statement(u, ["i"], {"s": (0, 3), "i": (1, 6)}, neighbours, blocks=(0, 1), name="S1"),
            statement(n, ["s"], {"s": (0, 3), "i": (0, 7)}, read(u, "i"), "+", True, blocks=(0,), name="S2"),
            statement(u, [0], {"s": (0, 3)}, read(n, "s"), blocks=(0,), name="S3"),
        ],
    )


def _totals() -> Specialization:
    """A sum over all steps of what a recurrence gives: it leaves the block."""
    x, y = tensor("x", "int32", (5,)), tensor("y", "int32", (6,), Role.OUTPUT)
    s = tensor("s", "int32", (), Role.OUTPUT)
    return specialize(
        [x, y, s],
        [
            statement(y, [0], {}, literal(1, "int32"), name="S0"),
            statement(s, [], {}, literal(0, "int32"), name="S1"),
            statement(
                y, [binary("i", "+", 1)], {"i": (0, 5)}, binary(read(y, "i"), "*", read(x, "i")), blocks=(0,), name="S2"
            ),
            statement(s, [], {"i": (0, 5)}, read(y, "i"), "+", blocks=(0,), name="S3"),
        ],
    )


RECURRENCES: Final[Mapping[str, Specialization]] = {
    "sums": _sums(),
    "network": _network(keeps_steps=True),
    "network in place": _network(keeps_steps=False),
    "sweeps": _sweeps(),
    "totals": _totals(),
}
