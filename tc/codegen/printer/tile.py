"""A register tile: the variables that hold its rows, and the functions of ``vectors.h`` on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tc.base.types import ScalarType
from tc.codegen.text.fragment import Fragment, call, prefix
from tc.polyhedral.cpu.microkernel import vector_widths
from tc.polyhedral.ir.loops import Buffer


class NotVectorsError(Exception):
    """The loops around a buffer do not have the form of a register tile; it is printed as an array."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One vector of a row: its first lane, the lanes of its type, and those in use."""

    number: int
    first: int
    width: int
    used: int


class Tile:
    """The rows of a buffer, each of them vectors of ``vector_bytes`` at most.

    ``name``: its variable as an array.  It remembers which vectors were asked for: these are declared.
    """

    def __init__(self, buffer: Buffer, name: str, vector_bytes: int) -> None:
        self.buffer: Final = buffer
        self.name: Final = name
        self.type: Final = buffer.layout.type
        if self.type not in (ScalarType.FLOAT32, ScalarType.FLOAT64):
            raise NotVectorsError(f"{buffer.name} is not of floating point")
        moving = [d for d, step in enumerate(buffer.layout.strides) if step == 1 and buffer.layout.shape[d] > 1]
        if len(moving) != 1:
            raise NotVectorsError(f"{buffer.name} has no row of lanes")
        self._lanes: Final = buffer.layout.shape[moving[0]]
        self.vectors: Final = tuple(self._cut(vector_bytes // self.type.itemsize))
        self._asked: Final[set[tuple[int, int]]] = set()

    def _cut(self, width: int) -> Iterator[Vector]:
        if width < 2:
            raise NotVectorsError("the target has no vectors")
        first = 0
        for number, (lanes, used) in enumerate(vector_widths(self._lanes, width)):
            if lanes < 2:
                raise NotVectorsError("a vector of one lane")
            yield Vector(number, first, lanes, used)
            first += used

    def variable(self, row: int, vector: Vector) -> str:
        """The variable that holds a vector of a row."""
        self._asked.add((row, vector.number))
        return self._variable(row, vector)

    def _variable(self, row: int, vector: Vector) -> str:
        return f"{self.name}_{row}_{vector.number}"

    def declarations(self) -> list[str]:
        """Those of the variables that were asked for."""
        lines = []
        for vector in self.vectors:
            names = [self._variable(row, vector) for row, number in sorted(self._asked) if number == vector.number]
            lines.append(f"{self._vector_type(vector)} {', '.join(names)};")
        return lines

    def rows_in_use(self) -> Sequence[int]:
        """The rows that hold something: those that were asked for, or all before any was."""
        return sorted({row for row, _ in self._asked}) or range(self.buffer.layout.span // self._lanes)

    def row_of(self, offset: int, step: int) -> int:
        """The row whose first lane is at ``offset``, if neighbouring lanes are neighbours in it."""
        if step != 1 or offset % self._lanes:
            raise NotVectorsError("lanes across rows")
        return offset // self._lanes

    def used(self, lanes: int) -> list[Vector]:
        """The vectors of a row, or those of its first ``lanes`` where these are fewer."""
        if lanes > self._lanes:
            raise NotVectorsError("more lanes than a row has")
        return [replace(v, used=min(v.used, lanes - v.first)) for v in self.vectors if v.first < lanes]

    # --- text

    def from_array(self, row: int, vector: Vector) -> str:
        """The statement that brings a vector from the array."""
        place = f"&{self.name}[{row * self._lanes + vector.first}]"
        return f"{self.variable(row, vector)} = {self._function('load', vector)}({place}{_count(vector)});"

    def to_array(self, row: int, vector: Vector) -> str:
        """The statement that brings a vector to the array."""
        place = f"&{self.name}[{row * self._lanes + vector.first}]"
        return f"{self._function('store', vector)}({place}, {self.variable(row, vector)}{_count(vector)});"

    def load(self, place: Fragment, vector: Vector, *, whole: bool) -> Fragment:
        """A vector from memory; ``whole``: what lies behind the lanes in use may be read, too."""
        name = self._function("load", vector, full=whole)
        count = [] if whole or vector.used == vector.width else [Fragment(str(vector.used))]
        return call(name, prefix("&", place), *count)

    def store(self, place: Fragment, value: Fragment, vector: Vector) -> str:
        """The statement that brings a vector to memory."""
        return f"{self._function('store', vector)}({prefix('&', place)}, {value}{_count(vector)});"

    def splat(self, value: Fragment, vector: Vector) -> Fragment:
        """A vector with one number in all lanes."""
        return call(f"tc_splat_{self.type}x{vector.width}", value)

    def spread(self, name: str, value: Fragment, vector: Vector) -> str:
        """The declaration of a vector with one number in all lanes."""
        return f"const {self._vector_type(vector)} {name} = {call(f'tc_spread_{self.type}x{vector.width}', value)};"

    def lower(self, name: str, widest: Vector, vector: Vector) -> Fragment:
        """As many lanes of what was spread as the vector has."""
        if vector.width == widest.width:
            return Fragment(name)
        return call(f"tc_lower_{self.type}x{widest.width}_x{vector.width}", Fragment(name))

    def function(self, name: str, vector: Vector, *arguments: Fragment) -> Fragment:
        """A builtin of two numbers in every lane."""
        return call(f"tc_lanes_{name}_{self.type}x{vector.width}", *arguments)

    def _vector_type(self, vector: Vector) -> str:
        return f"tc_{self.type}x{vector.width}"

    def _function(self, what: str, vector: Vector, *, full: bool = False) -> str:
        part = "" if full or vector.used == vector.width else "_part"
        return f"tc_{what}{part}_{self.type}x{vector.width}"


def _count(vector: Vector) -> str:
    return "" if vector.used == vector.width else f", {vector.used}"
