"""Statements whose ranges and subscripts name sizes, and the cases that they are for given sizes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np

from tests.quasi_affine.cases import Case
from tests.quasi_affine.terms import Choice, Name, Number, Operation, Term, names_in, random_term

SIZES = ((0, 0), (0, 3), (1, 1), (1, 4), (2, 1), (2, 2), (3, 0), (3, 5), (7, 4), (8, 8))

N, M, FIRST, SECOND = Name("N"), Name("M"), Name("i"), Name("j")


@dataclass(frozen=True, slots=True)
class Family(Case):
    """``x`` has the extents ``shape``, which are ``N`` or ``M``; ``size`` is N, ``other`` is M."""

    shape_of_x: tuple[str, ...] = ()
    other: int = 0

    @property
    def values(self) -> dict[str, int]:
        return {"N": self.size, "M": self.other}

    def parameters(self, suffix: str = "") -> str:
        extents = ",".join(f"{name}{suffix}" for name in self.shape_of_x)
        return f"float(N{suffix}) n{suffix}, float(M{suffix}) m{suffix}, int({extents}) x{suffix}"

    def arguments(self) -> tuple[object, ...]:
        return np.zeros(self.size, np.float32), np.zeros(self.other, np.float32), self.data()

    def of(self, size: int, other: int) -> Family:
        """The same statement for sizes."""
        extents = tuple({"N": size, "M": other}[name] for name in self.shape_of_x)
        return replace(self, size=size, other=other, extents=extents)


def random_family(rng: random.Random) -> Family:
    """``y(left) = x(read)``, where every term may name sizes."""
    ranges: list[tuple[str, Term, Term]] = [("i", rng.choice((Number(0), Number(0), Number(0), Number(1))), _end(rng))]
    left: tuple[Term, ...] = (FIRST,)
    operator = rng.choice(("=", "+=!", "+="))
    match rng.randrange(4):
        case 0:
            ranges.append(("j", Number(0), _end(rng)))
            left, operator = (FIRST,), "+=!"
        case 1:
            ranges.append(("j", Number(0), rng.choice((_end(rng), Operation("+", FIRST, Number(1))))))
            left = (FIRST, SECOND) if rng.random() < 0.3 else (_subscript(rng, (FIRST, SECOND)),)
            operator = rng.choice(("+=!", "+="))
        case 2:
            left = (_subscript(rng, (FIRST,)),)
        case _:
            pass
    names = tuple(Name(name) for name, _, _ in ranges)
    read = tuple(_subscript(rng, names) for _ in range(rng.choice((1, 1, 1, 2))))
    conditions: tuple[Operation, ...] = ()
    if rng.random() < 0.2:
        conditions = (Operation(rng.choice(("<", ">=", "!=")), _subscript(rng, names), rng.choice((N, M, Number(2)))),)
    guard = Operation("<", rng.choice(read), N) if rng.random() < 0.15 else None
    if set(names) > {Name(name) for name in frozenset().union(*map(names_in, left))} and operator == "=":
        operator = "+=!"
    shape = tuple(rng.choice("NM") for _ in read)
    if guard is not None and rng.random() < 0.5:
        shape = ("N",) * len(read)
    return Family(tuple(ranges), conditions, left, operator, read, guard, (1,) * len(read), 0, 0, shape)


def _end(rng: random.Random) -> Term:
    return rng.choice(
        (
            N,
            N,
            N,
            M,
            Operation("-", N, Number(1)),
            Operation("/", N, Number(2)),
            Operation("-", N, M),
            Operation("-", Operation("+", N, M), Number(1)),
            Operation("min", N, M),
            Operation("min", N, Number(4)),
            Operation("max", N, Number(4)),
            Operation("max", N, M),
            Operation("*", Number(2), N),
            Operation("%", N, Number(3)),
            Number(4),
        )
    )


def _subscript(rng: random.Random, names: tuple[Name, ...]) -> Term:
    i = rng.choice(names)
    size = rng.choice((N, N, M))
    shift = Number(rng.randrange(1, 4))
    match rng.randrange(16):
        case 0 | 1 | 2:
            return i
        case 3:
            return Operation("%", i, size)
        case 4:
            return Operation("%", Operation("+", i, shift), size)
        case 5:
            return Operation("%", Operation("+", Operation("-", i, shift), size), size)
        case 6:
            return Operation("-", i, Operation("*", size, Operation("/", i, size)))
        case 7:
            return Operation("-", Operation("-", size, Number(1)), i)
        case 8:
            return Operation("/", i, rng.choice((size, shift)))
        case 9:
            return Operation("min", i, Operation("-", size, Number(1)))
        case 10:
            return Operation("max", Operation("-", i, shift), Number(0))
        case 11:
            return Operation("%", Operation("+", i, rng.choice(names)), size)
        case 12:
            return Operation("+", rng.choice(names), rng.choice(names))
        case 13:
            return Operation("%", i, shift)
        case 14:
            return Choice(Operation("<", i, size), i, rng.choice((Number(0), Operation("-", i, size))))
        case _:
            return random_term(rng, [name.name for name in names], 2, ("N", "M"))
