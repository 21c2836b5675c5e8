"""The values that tensors hold while a definition runs: in-place updates replace one by the next.

A derivative needs the values that statements have read.  Where a later statement replaces one of them, it is copied
before (*value versioning*; static single assignment of whole tensors).  A maximum or minimum keeps the values that it
chooses from, if they are computed: to find the chosen ones again, they must not be rounded in another way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tc.base.frozen import frozen
from tc.gradient.images import NOTHING, missed, reaches_all
from tc.gradient.parts import over_written
from tc.gradient.reads import read_by
from tc.gradient.refusal import refused
from tc.language.algebra.extents import rename_extent
from tc.language.algebra.rewriting import fresh_name, map_statement, rename
from tc.language.program.program import (
    INDEX_TYPE,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    SizeReference,
    Statement,
    Tensor,
    iterators_in,
    rebuild,
)
from tc.language.program.written_elements import is_scatter


@frozen
class Step:
    """A statement of the forward, and where the values of the tensors that it reads are found when all have run.

    ``before``: of the tensors that it reads, its target among them.  ``after``: of its target behind it.  ``lasts``:
    the elements that it has written are still there.  ``first``: of each tensor, where its first value is, which has
    the extents that statements name.
    """

    statement: Statement
    before: Mapping[str, str]
    after: str
    lasts: bool
    first: Mapping[str, str]

    def kept(self, expression: Expression) -> Expression:
        """An expression of the statement in terms of the values that were read."""
        found = rebuild(expression, self.kept)
        match found:
            case Read():
                return replace(found, tensor=self.before[found.tensor])
            case SizeReference():
                return rename_extent(found, self.first) or found
            case _:
                return found


@frozen
class Forward:
    """``statements``: all that run, with the copies among them; ``steps``: those of the definition, in order."""

    tensors: Mapping[str, Tensor]
    statements: tuple[Statement, ...]
    steps: tuple[Step, ...]


def forward_of(program: Program, dead: AbstractSet[str]) -> Forward:
    """The statements of a program in which values that are replaced after they were read are tensors of their own.

    ``dead``: tensors without adjoints.
    """
    tensors = {tensor.name: tensor for tensor in program.tensors}
    taken = {*program.sizes, *tensors, *(scalar.name for scalar in program.scalars)}
    taken |= {iterator.name for statement in program.statements for iterator in statement.iterators}
    listed = list(_apart(program.statements, tensors, taken, dead))
    versions = _versions(listed)
    names = {
        tensor: [*(_declared(f"{tensor}_{number}", tensors[tensor], tensors, taken) for number in range(last)), tensor]
        for tensor, last in versions.last.items()
    }
    first = {tensor: own[0] for tensor, own in names.items()}
    for name, tensor in tensors.items():
        tensors[name] = replace(tensor, shape=tuple(rename(extent, first, {}) for extent in tensor.shape))
    statements: list[Statement] = []
    steps: list[Step] = []
    for statement, numbers in zip(listed, versions.read, strict=True):
        target = statement.target
        before = {tensor: names[tensor][number] for tensor, number in numbers.items()}
        after = names[target][versions.written[len(steps)]]
        number = versions.written[len(steps)]
        others = (n for n, own in enumerate(listed) if n > len(steps) or _is_beside(own, statement))
        lasts = not any(
            (listed[n].target, versions.written[n]) == (target, number) and _goes_on(listed[n]) for n in others
        )
        step = Step(statement, before, after, lasts, first)
        steps.append(step)
        begins = target in before and before[target] != after
        own = replace(map_statement(statement, step.kept), target=after)
        if begins:
            statements.extend(_left(own, tensors[before[target]], tensors[after], program, taken))
        statements.append(own)
    return Forward(tensors, tuple(statements), tuple(steps))


@frozen
class _Versions:
    """Numbers of values: ``read`` and ``written`` by each statement, and the ``last`` of each tensor."""

    read: Sequence[Mapping[str, int]]
    written: Sequence[int]
    last: Mapping[str, int]


def _versions(statements: Sequence[Statement]) -> _Versions:
    current: dict[str, int] = {}
    seen: set[str] = set()
    # Whose derivatives need what they have become.
    chosen: set[str] = set()
    read: list[Mapping[str, int]] = []
    written: list[int] = []
    for statement in statements:
        target = statement.target
        own = read_by(statement)
        if _continues(statement):
            own.add(target)
        seen |= own | ({target} & chosen if _goes_on(statement) else set())
        before = {tensor: current.setdefault(tensor, 0) for tensor in own}
        current.setdefault(target, 0)
        if target in seen and not statement.blocks:  # what was read is replaced
            before.setdefault(target, current[target])
            current[target] += 1
            seen.discard(target)
            chosen.discard(target)
        if statement.reduction in (Reduction.MINIMUM, Reduction.MAXIMUM):
            chosen.add(target)
        read.append(before)
        written.append(current[target])
    return _Versions(read, written, current)


def _is_beside(statement: Statement, other: Statement) -> bool:
    """Whether a statement is another one of the same block, which also runs in later steps."""
    return statement is not other and bool(statement.blocks) and statement.blocks[:1] == other.blocks[:1]


def _goes_on(statement: Statement) -> bool:
    """Whether a reduction goes on with the value that there is."""
    return statement.reduction is not None and not statement.initialize


def _continues(statement: Statement) -> bool:
    """Whether the derivative of a reduction needs the value that it goes on with."""
    return _goes_on(statement) and statement.reduction is not Reduction.ADD


def _apart(
    statements: Sequence[Statement], tensors: dict[str, Tensor], taken: set[str], dead: AbstractSet[str]
) -> Iterator[Statement]:
    """The statements, with the computed values of maxima and minima in tensors of their own."""
    for statement in statements:
        extremal = statement.reduction in (Reduction.MINIMUM, Reduction.MAXIMUM)
        computed = statement.value.type.is_floating and not isinstance(statement.value, Read)
        if not (extremal and computed and _is_box(statement)) or statement.target in dead:
            yield statement
            continue
        name = fresh_name(f"{statement.target}_terms", taken)
        taken.add(name)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in statement.iterators)
        shape = tuple(iterator.end for iterator in statement.iterators)
        origin = DerivedOrigin(f"the values that {statement.target} chooses from", statement.origin)
        tensors[name] = Tensor(name, statement.value.type, shape, Role.TEMPORARY, origin)
        plain = replace(statement, target=name, subscripts=subscripts, reduction=None, initialize=False, origin=origin)
        yield plain
        yield replace(statement, value=Read(name, subscripts, statement.value.type))


def _is_box(statement: Statement) -> bool:
    """Whether its iterators begin with 0 and run independently of each other."""
    plain = all(iterator.begin == Literal(0, INDEX_TYPE) for iterator in statement.iterators)
    return plain and not statement.conditions and not iterators_in(i.end for i in statement.iterators)


def _declared(name: str, like: Tensor, tensors: dict[str, Tensor], taken: set[str]) -> str:
    own = fresh_name(name, taken)
    taken.add(own)
    tensors[own] = Tensor(own, like.type, like.shape, Role.TEMPORARY, like.origin)
    return own


def _left(statement: Statement, old: Tensor, new: Tensor, program: Program, taken: set[str]) -> Iterator[Statement]:
    """What a statement leaves of the value that it replaces; GradientError where isl cannot tell."""
    iterators = over_tensor(new, taken)
    subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
    conditions: tuple[Expression, ...] = ()
    if statement.initialize or (statement.reduction is None and not is_scatter(statement)):
        if reaches_all(statement, new, program):
            return
        found = missed((over_written(statement),), new, [i.name for i in iterators], program)
        if found is None:
            raise refused(statement, f"a value that replaces a part of `{old.name}` has no gradient yet")
        if found == NOTHING:
            return
        conditions = found
    origin = DerivedOrigin(f"the value of {old.name} that is replaced", statement.origin)
    value = Read(old.name, subscripts, old.type)
    yield Statement("", iterators, conditions, new.name, subscripts, None, False, value, (), origin)


def over_tensor(tensor: Tensor, taken: Collection[str]) -> tuple[IterationVariable, ...]:
    """Iterators over all elements of a tensor."""
    names: list[str] = []
    for number in range(len(tensor.shape)):
        names.append(fresh_name(f"i{number}", {*taken, *names}))
    return tuple(
        IterationVariable(name, Literal(0, INDEX_TYPE), extent)
        for name, extent in zip(names, tensor.shape, strict=True)
    )
