"""Random statements with quasi-affine subscripts, and what they mean, found point by point."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tests.quasi_affine.terms import Name, Number, Operation, Term, Values, evaluate, names_in, random_term, text

Integers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Case:
    """``y(left) = x(read)`` over the points of ``ranges`` that fulfil ``conditions``; ``+=!`` sums, ``+=`` updates.

    ``guard``: where it does not hold, the value is 0 and nothing is read.  ``extents``: of ``x``.  ``size`` and
    ``scalar``: the values of N and s.
    """

    ranges: tuple[tuple[str, Term, Term], ...]
    conditions: tuple[Operation, ...]
    left: tuple[Term, ...]
    operator: str
    read: tuple[Term, ...]
    guard: Operation | None
    extents: tuple[int, ...]
    size: int
    scalar: int

    @property
    def values(self) -> dict[str, int]:
        return {"N": self.size, "s": self.scalar}

    # --- as text ---------------------------------------------------------------------------------------------

    def parameters(self, suffix: str = "") -> str:
        extents = ",".join(f"X{d}{suffix}" for d in range(len(self.extents)))
        return f"float(N{suffix}) n{suffix}, int s{suffix}, int({extents}) x{suffix}"

    def statement(self, suffix: str = "") -> str:
        left = ", ".join(text(e, suffix) for e in self.left)
        read = f"x{suffix}({', '.join(text(e, suffix) for e in self.read)})"
        value = read if self.guard is None else f"{text(self.guard, suffix)} ? {read} : 0"
        where = [f"{name}{suffix} in {text(b, suffix)}:{text(e, suffix)}" for name, b, e in self.ranges]
        where += [text(condition, suffix) for condition in self.conditions]
        return f"y{suffix}({left}) {self.operator} {value} where {', '.join(where)}"

    def definition(self) -> str:
        return f"def f({self.parameters()}) -> (y) {{ {self.statement()} }}"

    def arguments(self) -> tuple[object, ...]:
        return np.zeros(self.size, np.float32), self.scalar, self.data()

    def data(self) -> Integers:
        count = int(np.prod(self.extents))
        return (np.arange(count, dtype=np.int32) * 7 + 3).reshape(self.extents)

    # --- as numbers ------------------------------------------------------------------------------------------

    def points(self, values: Values | None = None) -> Iterator[dict[str, int]]:
        """The instances, for the case's own sizes unless others are given."""
        yield from self._points(dict(self.values if values is None else values), 0)

    def _points(self, known: dict[str, int], depth: int) -> Iterator[dict[str, int]]:
        if depth == len(self.ranges):
            if all(evaluate(condition, known) for condition in self.conditions):
                yield dict(known)
            return
        name, begin, end = self.ranges[depth]
        for value in range(evaluate(begin, known), evaluate(end, known)):
            yield from self._points({**known, name: value}, depth + 1)

    def written(self) -> list[tuple[int, ...]]:
        """The element that each instance writes; ``+=!`` sets those of all written iterators to 0 first."""
        points = self.points()
        if self.operator == "+=!":
            names = frozenset().union(*map(names_in, self.left))
            others = {name for name, _, _ in self.ranges} - names
            ranges = tuple(r for r in self.ranges if r[0] in names)
            conditions = tuple(c for c in self.conditions if not names_in(c) & others)
            points = replace(self, ranges=ranges, conditions=conditions).points()
        return [tuple(evaluate(e, point) for e in self.left) for point in points]

    def shape(self) -> tuple[int, ...]:
        """One past the greatest subscripts."""
        written = self.written()
        return tuple(1 + max(element[d] for element in written) for d in range(len(self.left))) if written else ()

    def reads_inside(self) -> bool:
        return all(
            0 <= evaluate(e, point) < extent
            for point in self.points()
            if self.guard is None or evaluate(self.guard, point)
            for e, extent in zip(self.read, self.extents, strict=True)
        )

    def writes_fit(self) -> bool:
        """Whether nothing is written below 0, and every element is: without a reduction, exactly once."""
        written = self.written()
        if any(subscript < 0 for element in written for subscript in element):
            return False
        if self.operator == "+=":
            return True
        counts = Counter(written)
        is_covered = not written or len(counts) == int(np.prod(self.shape()))
        return is_covered and (self.operator == "+=!" or set(counts.values()) <= {1})

    def runs(self) -> bool:
        """Whether there are instances."""
        return any(True for _ in self.points())

    def fits(self) -> bool:
        """Whether it reads and writes what there is."""
        return self.reads_inside() and self.writes_fit()

    def result(self) -> Integers:
        """What a call gives, for a case that fits."""
        found = np.zeros(self.shape() or (0,) * len(self.left), np.int32)
        data = self.data()
        for point in self.points():
            element = tuple(evaluate(e, point) for e in self.left)
            inside = self.guard is None or evaluate(self.guard, point)
            value = data[tuple(evaluate(e, point) for e in self.read)] if inside else 0
            found[element] = found[element] + value if self.operator != "=" else value
        return found


# --- random ones -------------------------------------------------------------------------------------------------


def random_case(rng: random.Random) -> Case:
    """Reads and left-hand sides by turns."""
    size = rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, rng.randrange(0, 2)))
    scalar = rng.choice((1, 2, 3, 4, 5, -3, 0, 2))
    return _reading(rng, size, scalar) if rng.random() < 0.5 else _writing(rng, size, scalar)


def _end(rng: random.Random) -> Term:
    return rng.choice((Number(rng.randrange(1, 10)), Name("N"), Name("N"), Operation("*", Number(2), Name("N"))))


def _reading(rng: random.Random, size: int, scalar: int) -> Case:
    """``y(i) = x(e)``, ``y(i,j) = x(e)`` or ``y(i) +=! x(e)``; half of the subscripts are moved to begin at 0."""
    ranges: list[tuple[str, Term, Term]] = [("i", Number(0), _end(rng))]
    left: list[Term] = [Name("i")]
    operator = "="
    match rng.choice(("one", "two", "sum", "sum")):
        case "two":
            ranges.append(("j", Number(0), _end(rng)))
            left.append(Name("j"))
        case "sum":
            begin, end = rng.choice(
                ((Number(0), _end(rng)), (Number(0), Operation("+", Name("i"), Number(1))), (Name("i"), Number(9)))
            )
            ranges.append(("j", begin, end))
            operator = "+=!"
        case _:
            pass
    names = [name for name, _, _ in ranges]
    read = tuple(random_term(rng, names, rng.choice((1, 2, 2, 3))) for _ in range(rng.choice((1, 1, 1, 2))))
    draft = Case(tuple(ranges), (), tuple(left), operator, read, None, (1,) * len(read), size, scalar)
    points = list(draft.points())
    moved = tuple(_moved(rng, e, [evaluate(e, point) for point in points]) for e in read)
    guard: Operation | None = None
    if rng.random() < 0.25:
        guard = Operation(rng.choice((">=", "<")), rng.choice(moved), Number(rng.randrange(0, 5)))
        points = [point for point in points if evaluate(guard, point)]
    extents = tuple(
        max(1, 1 + max((evaluate(e, point) for point in points), default=0) + rng.choice((0, 0, 0, 2, -1)))
        for e in moved
    )
    return Case(tuple(ranges), (), tuple(left), operator, moved, guard, extents, size, scalar)


def _moved(rng: random.Random, term: Term, values: list[int]) -> Term:
    least = min(values, default=0)
    if least >= 0 or rng.random() < 0.2:
        return term
    if rng.random() < 0.5:
        return Operation("+", term, Number(-least))
    modulus = Number(rng.choice((3, 5, 9)))
    return Operation("%", Operation("+", Operation("%", term, modulus), modulus), modulus)


def _writing(rng: random.Random, size: int, scalar: int) -> Case:
    """``y(e) = x(i)`` with subscripts that mostly reach every element once; ``y(e) += x(i)`` and ``+=!`` with any.

    Of these, several instances often share an element.
    """
    i, j, n = Name("i"), Name("j"), Name("N")
    a = rng.choice((2, 3, 4))
    factor = Number(a)
    one: list[tuple[str, Term, Term]] = [("i", Number(0), _end(rng))]
    two: list[tuple[str, Term, Term]] = [("i", Number(0), _end(rng)), ("j", Number(0), factor)]
    conditions: tuple[Operation, ...] = ()
    ranges: list[tuple[str, Term, Term]] = one
    operator = "="
    left: tuple[Term, ...]
    match rng.randrange(11):
        case 0:
            left = (Operation("/", i, factor), Operation("-", i, Operation("*", factor, Operation("/", i, factor))))
        case 1:
            left = (Operation("/", i, factor), Operation("%", i, factor))
        case 2:
            left = (Operation("%", Operation("-", Operation("+", i, n), Number(rng.randrange(0, 4))), n),)
        case 3:
            last = rng.randrange(3, 10)
            left = (Operation("%", Operation("-", Number(last), i), Number(last + rng.choice((0, 1)))),)
        case 4:
            swapped = Operation("*", Number(2), Operation("%", i, Number(2)))
            left = (Operation("-", Operation("+", i, Number(1)), swapped),)
        case 5:
            ranges, left = two, (Operation("+", Operation("*", factor, i), j),)
        case 6:
            ranges = two
            left = (Operation("/", Operation("+", Operation("*", factor, i), j), factor), Operation("%", j, factor))
        case 7:
            left = (Operation("/", i, factor),)
            conditions = (Operation("==", Operation("%", i, factor), Number(rng.randrange(0, 2))),)
        case 8:
            left, operator = (rng.choice((Operation("/", i, factor), Operation("%", i, factor))),), "+=!"
        case 9:
            ranges, operator = two, "+=!"
            left = (rng.choice((Operation("+", i, j), Operation("/", Operation("+", i, j), factor))),)
        case _:
            ranges = rng.choice((one, two))
            left = (random_term(rng, [name for name, _, _ in ranges], 2),)
            operator = rng.choice(("=", "+=", "+=!"))
    if rng.random() < 0.3:
        operator = "+=!"
    if rng.random() < 0.15:
        last = rng.randrange(1, 9)
        conditions = (*conditions, Operation(rng.choice(("<", ">=", "!=")), i, Number(last)))
    names = tuple(name for name, _, _ in ranges)
    read = tuple(map(Name, names))
    draft = Case(tuple(ranges), conditions, left, operator, read, None, (1,) * len(names), size, scalar)
    points = list(draft.points())
    if set(names) - frozenset().union(
        *map(names_in, left)
    ):  # a reduction without an operator says nothing about subscripts
        operator = rng.choice(("+=", "+=!")) if operator == "=" else operator
    extents = tuple(max(1, 1 + max((point[name] for point in points), default=0)) for name in names)
    return Case(tuple(ranges), conditions, left, operator, read, None, extents, size, scalar)
