"""The state of one definition while it is written: its arguments, its values, its statements."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from tc.base.types import ScalarType
from tests.fuzz.access import Accesses
from tests.fuzz.expressions import Expressions
from tests.fuzz.model import ZERO, Extent, Iterator, Tensor, Term, spellings
from tests.fuzz.names import Names
from tests.fuzz.recipe import ScalarArgument, TensorArgument
from tests.fuzz.source import Source


@dataclass(slots=True)
class Value:
    """A name that statements write.  ``was_read``: since it was written last."""

    tensor: Tensor
    was_read: bool = False


@dataclass(slots=True)
class Body:
    """``sizes``: values for the size variables; those that no argument declares yet mean nothing in the text.

    ``budget``: the most instances that a statement may have.  ``types``: those that this definition prefers.
    """

    source: Source
    names: Names
    sizes: dict[str, int]
    types: Sequence[ScalarType]
    budget: int
    parameters: list[tuple[str, TensorArgument | ScalarArgument]] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    incoming: set[str] = field(default_factory=set)
    statements: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    scatters: int = 0

    # --- arguments -------------------------------------------------------------------------------------------

    def type(self) -> ScalarType:
        return self.source.choice(self.types)

    @property
    def declared(self) -> list[str]:
        """The sizes that statements can name."""
        tensors = [p for _, p in self.parameters if isinstance(p, TensorArgument)]
        return [name for name in self.sizes if any(name in tensor.extents for tensor in tensors)]

    def known_extent(self) -> Extent:
        """A size that statements can name, or a number."""
        declared = self.declared
        if not declared or self.source.chance(0.1):
            number = self.source.randint(1, 5)
            return Extent(number, str(number))
        name = self.source.choice(declared)
        return Extent(self.sizes[name], name)

    def extent(self, value: int | None = None) -> Extent:
        """A size or a number for a dimension of an argument; of the given value, if there is one."""
        if value is None:
            name = self.source.choice(list(self.sizes))
            return Extent(self.sizes[name], name)
        same = [name for name, size in self.sizes.items() if size == value]
        if same and self.source.chance(0.8):
            return Extent(value, self.source.choice(same))
        if self.source.chance(0.5):
            return Extent(value, str(value))
        name = self.names.size()
        self.sizes[name] = value
        return Extent(value, name)

    def add_input(
        self, type: ScalarType, extents: Sequence[Extent], below: int | None = None, *, exact: bool = True
    ) -> Tensor:
        """A new tensor argument."""
        name = self.names.tensor()
        declared = tuple(e.value if e.text.isdigit() else e.text for e in extents)
        self.parameters.append((name, TensorArgument(type, declared, below=below)))
        tensor = Tensor(name, type, tuple(extents), below, exact)
        self.inputs.append(tensor)
        return tensor

    def add_scalar(self, type: ScalarType, value: int | float) -> str:
        """A new scalar argument."""
        name = self.names.scalar()
        self.parameters.append((name, ScalarArgument(type, value)))
        return name

    @property
    def scalars(self) -> list[tuple[str, ScalarType]]:
        return [(name, p.type) for name, p in self.parameters if isinstance(p, ScalarArgument)]

    @property
    def integers(self) -> list[tuple[str, int]]:
        """Scalar arguments that subscripts can use."""
        found: list[tuple[str, int]] = []
        for name, parameter in self.parameters:
            if isinstance(parameter, ScalarArgument) and parameter.type.is_integer and abs(parameter.value) < 8:
                found.append((name, int(parameter.value)))
        return found

    # --- reading ---------------------------------------------------------------------------------------------

    def readable(self, without: str | None = None) -> list[Tensor]:
        """Every tensor that a statement can read now."""
        written = [value.tensor for name, value in self.values.items() if name != without]
        return [*self.inputs, *written, *written]  # values of the definition itself are read more often

    def expressions(self, iterators: Sequence[Iterator], without: str | None = None) -> Expressions:
        """A source of values for one statement."""
        tensors = self.readable(without)
        gathers = [t for t in tensors if t.below is not None]
        accesses = Accesses(self.source, iterators, gathers, self.integers)
        plain = [t for t in tensors if t.below is None or self.source.chance(0.2)]
        return Expressions(self.source, accesses, iterators, plain, self.scalars, self.declared, self.types)

    def fits(self, iterators: Sequence[Iterator]) -> bool:
        """Whether a statement over these iterators has few enough instances."""
        instances = 1
        for iterator in iterators:
            instances *= max(iterator.length, 1)
        return instances <= self.budget

    # --- writing ---------------------------------------------------------------------------------------------

    def fresh_target(self) -> str:
        """A new name, or one whose value was read and may be replaced."""
        old = [name for name, value in self.values.items() if value.was_read]
        return self.source.choice(old) if old and self.source.chance(0.2) else self.names.tensor()

    def write(
        self,
        name: str,
        subscripts: Sequence[str],
        operator: str,
        value: Term,
        extents: Sequence[int],
        where: Sequence[str] = (),
        read: Set[str] = frozenset(),
    ) -> None:
        """Adds a statement and remembers what it writes and reads.

        ``extents``: of the value after it; the type of ``value`` is its type.
        """
        target = f"{name}({', '.join(subscripts)})"
        if not subscripts and self.source.chance(0.7):
            target = name
        text, where = value.text, [*where, *self._more_clauses(read)]
        if self.source.chance(0.04):
            text, where = "q", [*where, f"q = {text}"]
        clauses = f" where {', '.join(where)}" if where else ""
        self.add(f"{target} {operator} {text}{clauses}")
        known = tuple(Extent(extent, f"{name}.{d}") for d, extent in enumerate(extents))
        rounding = value.type.is_floating and operator not in ("=", "min=!", "max=!", "min=", "max=")
        self.know(Tensor(name, value.type, known, exact=value.exact and not rounding))
        self.mark_read(set(read) - {name})

    def _more_clauses(self, read: Set[str]) -> list[str]:
        """A clause that asks for nothing new: an element of a tensor exists that surely does."""
        able = [t for t in self.readable() if t.name in read and t.extents and all(e.value for e in t.extents)]
        if not able or not self.source.chance(0.04):
            return []
        tensor = self.source.choice(able)
        return [f"exists {tensor.name}({', '.join(str(e.value - 1) for e in tensor.extents)})"]

    def add(self, statement: str) -> None:
        """Adds a statement; a ``;`` before it where it must be, and sometimes where it may be."""
        if self.statements and (statement.startswith("(") or self.source.chance(0.2)):
            self.statements[-1] += ";"
        self.statements.append(statement)

    def know(self, value: Tensor) -> None:
        """Remembers the value that a name has from now on."""
        self.values[value.name] = Value(value)

    def mark_read(self, names: set[str]) -> None:
        for name in names & self.values.keys():
            self.values[name].was_read = True

    # --- text ------------------------------------------------------------------------------------------------

    def text(self, name: str, results: Sequence[str]) -> str:
        """The definition."""
        parameters = [self._parameter(n, p) for n, p in self.parameters]
        head = f"def {name}({', '.join(parameters)}) -> ({', '.join(results)}) {{"
        return "\n".join([head, *(f"  {statement}" for statement in self.statements), "}"])

    def _parameter(self, name: str, parameter: TensorArgument | ScalarArgument) -> str:
        type = self.source.choice(spellings(parameter.type))
        if isinstance(parameter, ScalarArgument):
            return f"{type} {name}"
        return f"{type}({', '.join(map(str, parameter.extents))}) {name}"


def whole(name: str, extent: Extent, *, bound: bool = False) -> Iterator:
    """An iterator over a whole dimension."""
    return Iterator(name, ZERO, extent, bound)
