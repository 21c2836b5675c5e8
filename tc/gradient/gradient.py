"""``gradient``: the program of the gradient of a program, and of its directional derivative.

It runs the statements of the forward that derivatives read, then the reverse sweep.  Its text goes through the front
end like any other, which infers ranges and proves that every element is written once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tc.base.errors import Diagnostic, GradientError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.gradient.assemble import lowered, pruned, with_wide_temporaries
from tc.gradient.expand import expanded
from tc.gradient.images import is_one_to_one, reaches_all
from tc.gradient.incoming import with_known_values
from tc.gradient.parts import apart_in_steps
from tc.gradient.pull import pulled
from tc.gradient.reads import read_by
from tc.gradient.reverse import Reverse
from tc.gradient.simplify import simplified
from tc.gradient.terms import adjoint_type, call, number
from tc.gradient.ties import Ties
from tc.gradient.vanishing import vanishes
from tc.gradient.versions import forward_of
from tc.gradient.workspace import Workspace, filled, moved
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.extents import extent_name, named_extent
from tc.language.algebra.fold import substitute
from tc.language.algebra.polynomial import Atoms
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    InRange,
    Literal,
    Precondition,
    Program,
    Reduction,
    Role,
    SizeReference,
    Statement,
    Tensor,
    reads_in,
    walk,
)
from tc.language.program.written_elements import is_scatter, scatters
from tc.language.prove.named_extents import extents_in_sizes, has_named_extent


def gradient(program: Program, names: Sequence[str] = (), ties: Ties = Ties.SPLIT) -> Program:
    """The gradient of a definition by some of its arguments; without names, by all of its floating tensors.

    It takes the arguments of the definition and, for every floating result ``C``, ``d_C``: the derivative of some
    number by each element of ``C``.  Its results are ``d_A``, the derivatives of that number by each element of ``A``.
    GradientError for what has none.
    """
    return derived_gradient(program, names, ties).program


def derived_gradient(program: Program, names: Sequence[str] = (), ties: Ties = Ties.SPLIT) -> Derived:
    """As ``gradient``, and how it came about."""
    wanted = wanted_of(program, names)
    sweep, swept = swept_through(program, wanted, ties)
    raw = sweep.program_of(swept, swept.results)
    given = {name: tensor.name for name, tensor in swept.given.items()}
    return Derived(lowered(raw), raw, given, dict(zip(wanted, swept.results, strict=True)), sweep.extents)


@frozen
class Derived:
    """The ``program`` of a gradient; ``raw``: before the front end has read it, with the reasons of its statements.

    ``given``: the arguments with the adjoints, by result.  ``results``: the names of its results, by argument.
    ``extents``: what sizes are that adjoints of results brought in.
    """

    program: Program
    raw: Program
    given: Mapping[str, str]
    results: Mapping[str, str]
    extents: Mapping[Expression, Expression]


def wanted_of(program: Program, names: Sequence[str]) -> tuple[str, ...]:
    """The arguments whose adjoints are asked for; GradientError for names of others, or where there are none."""
    given = {t.name: t for t in program.tensors if t.name in program.arguments}
    floating = [name for name in program.arguments if name in given and given[name].type.is_floating]
    for name in names:
        if name not in floating:
            known = f"its floating tensors are {', '.join(floating)}" if floating else "it has none"
            raise GradientError(Diagnostic(f"`{name}` is no argument of `{program.name}` with a gradient: {known}"))
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    if repeated is not None:
        raise GradientError(Diagnostic(f"`{repeated}` is named twice"))
    if not any(tensor.type.is_floating for tensor in program.tensors if tensor.name in program.results):
        raise GradientError(Diagnostic(f"`{program.name}` has no floating result"))
    if not floating:
        raise GradientError(Diagnostic(f"`{program.name}` has no floating tensor as an argument"))
    return tuple(names) or tuple(floating)


def swept_through(program: Program, wanted: Sequence[str], ties: Ties, *, saving: bool = False) -> tuple[Sweep, Swept]:
    """The reverse sweep, without the adjoints that cancel out: nothing follows from them."""
    sweep = Sweep(program, ties, saving=saving)
    swept = sweep.swept(wanted)
    written = Counter(statement.target for statement in sweep.program.statements)
    extrema = (s for s in sweep.program.statements if s.reduction in (Reduction.MINIMUM, Reduction.MAXIMUM))
    once = [s.target for s in extrema if written[s.target] == 1 and s.target in swept.adjoints]
    if not once:
        return sweep, swept
    whole = sweep.program_of(swept, swept.results)
    dead = frozenset(name for name in once if vanishes(whole, swept.adjoints[name]))
    if not dead:
        return sweep, swept
    sweep = Sweep(program, ties, saving=saving, dead=dead)
    return sweep, sweep.swept(wanted)


@frozen
class Swept:
    """The ``statements`` of a forward, and of the reverse sweep behind them.

    ``given``: the tensors of adjoints that come in, by result of the forward.  ``results``: those that are asked for.
    ``adjoints``: those of all tensors.
    """

    statements: Sequence[Statement]
    given: Mapping[str, Tensor]
    results: tuple[str, ...]
    adjoints: Mapping[str, str]


class Sweep:
    """The reverse sweep through a definition.

    ``program``: the definition, in which results that come in are copied first.  ``saving``: adjoints are computed from
    values that the forward has at hand, rather than from what these are made of.  ``dead``: tensors whose adjoints are
    known to be 0.
    """

    def __init__(
        self, definition: Program, ties: Ties, *, saving: bool = False, dead: AbstractSet[str] = frozenset()
    ) -> None:
        known = with_known_values(definition)
        program, self.names = expanded(apart_in_steps(known.program)), known.names
        self.program = program
        self.ties = ties
        self.saving = saving
        self.dead = dead
        self.forward = forward_of(program, dead)
        self.workspace = Workspace(program, self.forward)
        self.sizes: list[str] = list(program.sizes)
        self.preconditions: list[Precondition] = list(program.preconditions)
        self.extents: dict[Expression, Expression] = {}
        # What extents are that the definition knows by name only, once that is asked.
        self.in_sizes: Mapping[Expression, Expression] | None = None
        for name in known.arguments:
            self.workspace.tensors[name] = self.parameter(self.workspace.tensors[name])
        # Those of the forward: adjoints bring in further ones.
        self.own_sizes, self.own_preconditions = tuple(self.sizes), tuple(self.preconditions)

    def swept(self, wanted: Sequence[str]) -> Swept:
        """All statements, for the adjoints of the arguments named."""
        active = self._active(wanted)
        given = {name: self._incoming(name) for name in self._floating_results()}
        gathered = self._gathered(active)
        adjoints: dict[str, str] = {}
        for name in sorted(active, key=list(self.workspace.tensors).index):
            tensor = self.workspace.tensors[name]
            if name in given and name not in gathered:
                adjoints[name] = given[name].name
                continue
            summed = name in given or (name in wanted and tensor.type.is_half)
            wish = f"d_{name}_total" if summed else f"d_{name}"
            own = self.workspace.declare(wish, adjoint_type(tensor.type), tensor.shape, tensor.origin)
            adjoints[name] = own.name
        added = {adjoints[n]: given[n] for n in given if n in gathered & active}
        reverse = Reverse(self.workspace, adjoints, self.ties, added, saving=self.saving)
        for block, group in itertools.groupby(reversed(self.forward.steps), lambda step: step.statement.blocks[:1]):
            steps = list(group)
            if block:
                reverse.visit_block(steps)
            else:
                for step in steps:
                    reverse.visit(step)
        results, last = self._results(wanted, reverse.adjoints)
        pushed = [made for statement in reverse.statements for made in pulled(statement, self.workspace)]
        begun = self._with_zeros(pushed, [a for n, a in adjoints.items() if n not in given])
        return Swept([*self.forward.statements, *begun, *last], given, tuple(results), dict(reverse.adjoints))

    def _active(self, wanted: Sequence[str]) -> frozenset[str]:
        """The tensors that depend on what is wanted and that results depend on."""
        reads = [
            (s.target, {r.tensor for r in reads_in(s.value)})
            for s in (step.statement for step in self.forward.steps)
            if s.target not in self.dead
        ]
        depend, reach = set(wanted), set(self.program.results)
        grown = True
        while grown:  # steps of a block depend on each other in any order
            before = len(depend), len(reach)
            for target, own in reads:
                if own & depend and self.workspace.tensors[target].type.is_floating:
                    depend.add(target)
            for target, own in reversed(reads):
                if target in reach:
                    reach |= own
            grown = before != (len(depend), len(reach))
        return frozenset(depend & reach) | frozenset(wanted)

    def _gathered(self, active: frozenset[str]) -> frozenset[str]:
        """The tensors to whose adjoints something is added: those that others are computed from."""
        return frozenset(
            tensor for step in self.forward.steps if step.statement.target in active for tensor in step.before
        )

    def _floating_results(self) -> list[str]:
        return [name for name in self.program.results if self.workspace.tensors[name].type.is_floating]

    def _incoming(self, name: str) -> Tensor:
        """The argument with the adjoint of a result."""
        like = self.parameter(self.workspace.tensors[name])
        return self.workspace.declare(f"d_{self.names.get(name, name)}", like.type, like.shape, like.origin, like.role)

    def parameter(self, tensor: Tensor) -> Tensor:
        """What an argument is that has the values of a tensor."""
        shape = tuple(self._extent(tensor, number, extent) for number, extent in enumerate(tensor.shape))
        return replace(tensor, shape=shape, role=Role.INPUT)

    def _extent(self, tensor: Tensor, dimension: int, extent: Expression) -> Expression:
        """An extent that a parameter may have; a computed one gets a name."""
        if not _is_computed(extent):
            return extent
        if has_named_extent(extent):
            self.in_sizes = extents_in_sizes(self.program) if self.in_sizes is None else self.in_sizes
            extent = substitute(extent, self.in_sizes)
        extent = self._nonnegative(extent)
        known = next((size for size, value in self.extents.items() if value == extent), None)
        if known is not None:
            return known
        size = SizeReference(self.workspace.name(f"{tensor.name}{dimension}"))
        self.sizes.append(size.name)
        self.extents[size] = extent
        if extent == extent_name(tensor.name, dimension) and tensor.name in self.program.arguments:
            return size
        condition = Binary(BinaryOperator.EQUAL, size, extent, ScalarType.BOOL)
        result = self.names.get(tensor.name, tensor.name)
        message = f"{size.name} must be dimension {dimension} of {result}"
        self.preconditions.append(Precondition(condition, message, DerivedOrigin(message, tensor.origin)))
        return size

    def _nonnegative(self, extent: Expression) -> Expression:
        """An extent as a number of elements: none where it is negative."""
        atoms = Atoms(self.program.sizes, (scalar.name for scalar in self.program.scalars))
        value = atoms.polynomial(extent)
        return extent if atoms.is_nonnegative(value) else call("max", extent, Literal(0, INDEX_TYPE))

    def _results(self, wanted: Sequence[str], adjoints: dict[str, str]) -> tuple[list[str], list[Statement]]:
        """The names of the results, and what rounds those of halves, once each."""
        results: list[str] = []
        last: list[Statement] = []
        for name in wanted:
            tensor = self.workspace.tensors[name]
            own = self.workspace.tensors[adjoints[name]]
            if tensor.type is own.type:
                results.append(own.name)
                continue
            rounded = self.workspace.declare(f"d_{name}", tensor.type, tensor.shape, tensor.origin)
            last.append(moved(self.workspace, rounded, own, f"adjoint of {name}, in its type"))
            results.append(rounded.name)
        return results, last

    def _with_zeros(self, statements: Sequence[Statement], adjoints: Sequence[str]) -> list[Statement]:
        """The statements with each adjoint begun: by the first that adds to it, where that reaches all of it."""
        found: list[Statement] = []
        waiting = dict.fromkeys(adjoints)
        for statement in statements:
            own = statement.target if statement.target in waiting else None
            reads = read_by(statement)
            read = [name for name in waiting if name in reads or (name == own and statement.blocks)]
            for name in read:
                del waiting[name]
                found.insert(_before_block(found, statement), self._zero(self.workspace.tensors[name]))
            if own in waiting:
                del waiting[own]
                tensor = self.workspace.tensors[own]
                # The extent of what is scattered to follows from other writes where there are any.
                known = not is_scatter(statement) or [s.target for s in statements].count(own) == 1
                adds = statement.reduction is Reduction.ADD
                if known and adds and reaches_all(statement, tensor, self._sized()):
                    found.append(_begun(statement))
                    continue
                found.append(self._zero(tensor))
            found.append(statement)
        return [*(self._zero(self.workspace.tensors[name]) for name in waiting), *found]

    def _zero(self, tensor: Tensor) -> Statement:
        reason = "an adjoint that nothing was added to yet"
        return filled(self.workspace, tensor, lambda _: number(0, tensor.type), reason)

    def _sized(self) -> Program:
        """A program with the sizes and preconditions of the gradient."""
        return replace(self.program, sizes=tuple(self.sizes), preconditions=tuple(self.preconditions))

    def program_of(self, swept: Swept, results: Sequence[str]) -> Program:
        """The program of the statements that results are computed from."""
        known = self.workspace.tensors
        adjoints = [tensor.name for tensor in swept.given.values()]
        arguments = (*self.program.arguments, *adjoints)
        made = Program(
            name=f"{self.program.name}_gradient",
            sizes=tuple(self.sizes),
            scalars=self.program.scalars,
            tensors=tuple(known.values()),
            arguments=arguments,
            results=tuple(results),
            statements=tuple(swept.statements),
            preconditions=tuple(self.preconditions),
        )
        return with_wide_temporaries(simplified(pruned(made), frozenset(swept.adjoints.values())))


def _is_computed(extent: Expression) -> bool:
    return not isinstance(extent, Literal) and not (isinstance(extent, SizeReference) and named_extent(extent) is None)


def _begun(statement: Statement) -> Statement:
    """The sum that begins what it adds to; a plain assignment where nothing is added up."""
    ranged = any(isinstance(part, InRange) for part in walk(statement.value))
    if is_one_to_one(statement) and not ranged and not any(map(scatters, statement.subscripts)):
        return replace(statement, reduction=None)
    return replace(statement, initialize=True)


def _before_block(statements: Sequence[Statement], statement: Statement) -> int:
    """Where the block begins that a further statement goes on with."""
    place = len(statements)
    while place > 0 and statement.blocks and statements[place - 1].blocks[:1] == statement.blocks[:1]:
        place -= 1
    return place
