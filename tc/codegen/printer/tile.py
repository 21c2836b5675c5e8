"""A register tile: the variables that hold its rows, and the functions of ``vectors.h`` on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.codegen.printer.printed import Printed, line, together
from tc.codegen.text.fragment import Fragment, call, element, listed, named, prefix
from tc.polyhedral.cpu.tile_cost import vector_widths
from tc.polyhedral.ir.loops import Buffer


class NotVectorsError(Exception):
    """The loops around a buffer do not have the form of a register tile; it is printed as an array."""


@frozen
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
        if self.type not in (ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32):
            raise NotVectorsError(f"vectors of {self.type}")
        moving = [d for d, step in enumerate(buffer.layout.strides) if step == 1 and buffer.layout.shape[d] > 1]
        if len(moving) != 1:
            raise NotVectorsError(f"{buffer.name} has no row of lanes")
        self._lanes: Final = buffer.layout.shape[moving[0]]
        self.vectors: Final = tuple(self._cut(vector_bytes // self.type.itemsize))
        pairs = zip(buffer.layout.strides, buffer.layout.shape, strict=True)
        # How far rows of the array are apart; of one row, there is room for its vectors.
        self._pitch: Final = min((step for step, extent in pairs if step > 1 and extent > 1), default=self._whole)
        self.span: Final = (buffer.layout.span - self._lanes) // self._pitch * self._pitch + self._pitch
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

    @property
    def _whole(self) -> int:
        """The lanes of the vectors of a row."""
        return self.vectors[-1].first + self.vectors[-1].width

    def variable(self, row: int, vector: Vector) -> Fragment:
        """The variable that holds a vector of a row."""
        self._asked.add((row, vector.number))
        return self._variable(row, vector)

    def _variable(self, row: int, vector: Vector) -> Fragment:
        return named(f"{self.name}_{row}_{vector.number}")

    def declarations(self) -> Printed:
        """Those of the variables that were asked for."""
        asked = {number for _, number in self._asked}
        vectors = (own for own in self.vectors if own.number in asked)
        return together(line("{} {};", self._type(v), listed(self._variables(v))) for v in vectors)

    def _variables(self, vector: Vector) -> Iterator[Fragment]:
        return (self._variable(row, vector) for row, number in sorted(self._asked) if number == vector.number)

    def rows_in_use(self) -> Sequence[int]:
        """The rows that hold something: those that were asked for, or all before any was."""
        return sorted({row for row, _ in self._asked}) or range(self.span // self._pitch)

    def size(self) -> int:
        """The vectors of all rows."""
        return self.span // self._pitch * len(self.vectors)

    def row_of(self, offset: int, step: int) -> int:
        """The row whose first lane is at ``offset``, if neighbouring lanes are neighbours in it."""
        if step != 1 or offset % self._pitch:
            raise NotVectorsError("lanes across rows")
        return offset // self._pitch

    def used(self, lanes: int) -> list[Vector]:
        """The vectors of a row, or those of its first ``lanes`` where these are fewer."""
        if lanes > self._lanes:
            raise NotVectorsError("more lanes than a row has")
        return [replace(v, used=min(v.used, lanes - v.first)) for v in self.vectors if v.first < lanes]

    def has_room(self) -> bool:
        """Whether rows of the array have all lanes of their vectors, in use or not."""
        return self._whole <= self._pitch

    # --- text

    def from_array(self, row: int, vector: Vector) -> Printed:
        """The statement that brings a vector from the array."""
        loaded = call(self._function("load", vector, self.type), self._in_array(row, vector), *_count(vector))
        return line("{} = {};", self.variable(row, vector), loaded)

    def to_array(self, row: int, vector: Vector) -> Printed:
        """The statement that brings a vector to the array."""
        return self._stored(self._in_array(row, vector), self.variable(row, vector), vector, self.type)

    def _in_array(self, row: int, vector: Vector) -> Fragment:
        return prefix("&", element(self.name, Fragment(str(row * self._pitch + vector.first))))

    def load(self, place: Fragment, vector: Vector, type: ScalarType, *, whole: bool) -> Fragment:
        """A vector from memory; ``whole``: what lies behind the lanes in use may be read, too.

        ``type``: of the elements there; halves become lanes of the tile's type.
        """
        name = self._function("load", vector, type, full=whole)
        return call(name, prefix("&", place), *(() if whole else _count(vector)))

    def load_second(self, place: Fragment, vector: Vector) -> Fragment:
        """A vector of every second element in memory, of the tile's type, and nothing behind the last one."""
        return call(self._function("load_second", vector, self.type), prefix("&", place), *_count(vector))

    def load_between(self, place: Fragment, first: Fragment, last: Fragment, vector: Vector) -> Fragment:
        """Some lanes of a vector from memory; the others are 0, and what they stand for is not read."""
        return call(f"tc_load_between_{self.type}x{vector.width}", prefix("&", place), first, last)

    def between(self, old: Fragment, new: Fragment, first: Fragment, last: Fragment, vector: Vector) -> Fragment:
        """Some lanes of a vector, and the others of an older one."""
        return call(f"tc_between_{self.type}x{vector.width}", old, new, first, last)

    def store(self, place: Fragment, value: Fragment, vector: Vector, type: ScalarType) -> Printed:
        """The statement that brings a vector to memory, whose elements are of a type."""
        return self._stored(prefix("&", place), value, vector, type)

    def _stored(self, address: Fragment, value: Fragment, vector: Vector, type: ScalarType) -> Printed:
        return line("{};", call(self._function("store", vector, type), address, value, *_count(vector)))

    def splat(self, value: Fragment, vector: Vector, type: ScalarType) -> Fragment:
        """A vector of a type with one number in all lanes."""
        return call(f"tc_splat_{type}x{vector.width}", value)

    def spread(self, name: str, value: Fragment, vector: Vector) -> Printed:
        """The declaration of a vector with one number in all lanes."""
        spread = call(f"tc_spread_{self.type}x{vector.width}", value)
        return line("const {} {} = {};", self._type(vector), named(name), spread)

    def lower(self, name: str, widest: Vector, vector: Vector) -> Fragment:
        """As many lanes of what was spread as the vector has."""
        if vector.width == widest.width:
            return named(name)
        return call(f"tc_lower_{self.type}x{widest.width}_x{vector.width}", named(name))

    def function(self, name: str, vector: Vector, *arguments: Fragment) -> Fragment:
        """A builtin of two numbers in every lane."""
        return call(f"tc_lanes_{name}_{self.type}x{vector.width}", *arguments)

    def choose(self, comparison: str, vector: Vector, *arguments: Fragment) -> Fragment:
        """In every lane the third or the fourth number, as the comparison of the first two says."""
        return call(f"tc_choose_{comparison}_{self.type}x{vector.width}", *arguments)

    def add_dot(self, dot: str, vector: Vector, *words: Fragment) -> Fragment:
        """A vector of sums, and in every lane the dot product of two words added to it."""
        return call(f"tc_add_{dot}_{self.type}x{vector.width}", *words)

    def loaded_type(self, vector: Vector, type: ScalarType) -> Fragment:
        """The type of a vector of elements of a type: halves become lanes of the tile's."""
        return named(f"tc_{self.type if type.is_half else type}x{vector.width}")

    def _type(self, vector: Vector) -> Fragment:
        return named(f"tc_{self.type}x{vector.width}")

    def _function(self, what: str, vector: Vector, type: ScalarType, *, full: bool = False) -> str:
        """Between memory with elements of a type, and lanes."""
        half, lanes = (f"_{type}", self.type) if type.is_half else ("", type)
        part = "" if full or vector.used == vector.width else "_part"
        return f"tc_{what}{half}{part}_{lanes}x{vector.width}"


def _count(vector: Vector) -> tuple[Fragment, ...]:
    """The argument that says how many lanes are in use, where not all are."""
    return () if vector.used == vector.width else (Fragment(str(vector.used)),)
