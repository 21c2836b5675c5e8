"""Storage contraction: temporaries of which the steps of a block need the last few only.

``h(t+1,i) = f(h(t,j))`` needs the states of two steps at a time, if what follows the block reads the last ones.  Its
first dimension is then counted modulo 2, the depth of the dependence: memory and cache hold two steps, not all of them
(Lefebvre and Feautrier, Automatic storage management for parallel programs, Parallel Computing 24, 1998, Section 4).

This proposes; ``tc.polyhedral.proof.rewrites.verify_contraction`` says which proposals read what the program reads.
What steps do not wait for leaves its block and runs for all steps at once, so it keeps an element for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from tc.grammar.syntax import BinaryOperator
from tc.language.program.affine_form import affine_form
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.polyhedral.ir.contractions import Contraction

Item = TypeVar("Item")

# Fewer steps are not worth a remainder.
_LEAST_STEPS: Final = 4


def contractions(specialization: Specialization) -> Iterator[tuple[Contraction, ...]]:
    """What may be contracted, as far as subscripts say; for each dimension, the fewest steps first."""
    program, layouts = specialization.program, specialization.layouts
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    flows = {block: _flows(program, block) for block in {s.blocks[0] for s in program.statements if s.blocks}}
    for tensor in program.tensors:
        block = next((s.blocks[0] for s in program.statements if s.target == tensor.name and s.blocks), None)
        if block is None or tensor.role is not Role.TEMPORARY or tensor.name in aliased:
            continue
        if _goes_in_steps(tensor.name, flows[block]):
            layout = layouts[tensor.name]
            yield from filter(None, (_along(program, tensor, block, n, layout) for n in range(len(layout.shape))))


def contracted(specialization: Specialization, made: Contraction) -> Specialization:
    """The program that takes subscripts of a tensor modulo a number of steps."""
    program, old = specialization.program, specialization.layouts[made.tensor]

    def shortened(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=_with(tensor.shape, made.dimension, Literal(made.size, INDEX_TYPE)))

    shape = _with(old.shape, made.dimension, made.size)
    extents = _with(old.extents, made.dimension, None) if old.extents else ()
    if all(extent is None for extent in extents):
        extents = ()
    layout = Layout(old.type, shape, contiguous_strides(shape), extents, packed=old.packed and bool(extents))
    tensors = tuple(shortened(tensor) if tensor.name == made.tensor else tensor for tensor in program.tensors)
    statements = tuple(modulo(statement, made) for statement in program.statements)
    return replace(
        specialization,
        program=replace(program, tensors=tensors, statements=statements),
        layouts={**specialization.layouts, made.tensor: layout},
    )


def modulo(statement: Statement, made: Contraction) -> Statement:
    """The statement with the subscripts of a tensor taken modulo the number of steps that it holds."""

    def change(expression: Expression) -> Expression:
        changed = rebuild(expression, change)
        if isinstance(changed, Read) and changed.tensor == made.tensor:
            return replace(changed, subscripts=_taken(changed.subscripts, made))
        return changed

    value = change(statement.value)
    if statement.target != made.tensor:
        return replace(statement, value=value)
    return replace(statement, value=value, subscripts=_taken(statement.subscripts, made))


def _taken(subscripts: tuple[Expression, ...], made: Contraction) -> tuple[Expression, ...]:
    own, size = subscripts[made.dimension], Literal(made.size, INDEX_TYPE)
    if made.size == 1:
        return _with(subscripts, made.dimension, Literal(0, INDEX_TYPE))
    if isinstance(own, Literal):
        return _with(subscripts, made.dimension, Literal(int(own.value) % made.size, INDEX_TYPE))
    return _with(subscripts, made.dimension, Binary(BinaryOperator.REMAINDER, own, size, INDEX_TYPE))


def _along(program: Program, tensor: Tensor, block: int, dimension: int, layout: Layout) -> tuple[Contraction, ...]:
    """How a tensor may be contracted along a dimension: as deep as steps look back, and what follows them."""
    written, read, last, kept = list[int](), list[int](), list[int](), list[int]()
    for statement in program.statements:
        step = statement.iterators[0] if statement.blocks[:1] == (block,) else None
        others = (*statement.subscripts, *statement.conditions, *statement.required)
        if any(own.tensor == tensor.name for part in others for own in reads_in(part)):
            return ()
        for subscripts, is_write in _accesses(statement, tensor.name):
            own = subscripts[dimension]
            distance = _distance(own, step)
            if step is None and not any(iterators_in((own,))):
                kept += [int(own.value)] if isinstance(own, Literal) and not is_write else []
            elif distance is None:
                return ()
            else:
                (written if is_write else read).append(distance)
                if step is not None and is_write and isinstance(step.end, Literal):
                    last.append(int(step.end.value) - 1 + distance)
    if not written or not read:
        return ()
    # What is read behind the block is among the last elements, or has been overwritten.
    behind = max(last) - min(kept) + 1 if last and kept else 0
    depth, extent = max(written) - min(read), layout.shape[dimension]
    # One step less where each element is read by what overwrites it.
    sizes = sorted({max(depth, behind), max(depth + 1, behind)})
    fitting = (size for size in sizes if 0 < 2 * size <= extent >= _LEAST_STEPS)
    return tuple(Contraction(tensor.name, dimension, size, extent) for size in fitting)


def _accesses(statement: Statement, tensor: str) -> Iterator[tuple[tuple[Expression, ...], bool]]:
    """The subscripts with which a statement touches a tensor, and whether it writes."""
    yield from ((own.subscripts, False) for own in reads_in(statement.value) if own.tensor == tensor)
    if statement.target == tensor:
        yield statement.subscripts, True
        if statement.reduction is not None and not statement.initialize:
            yield statement.subscripts, False


def _distance(subscript: Expression, step: IterationVariable | None) -> int | None:
    """How far a subscript is from the step that is run; None where it is no step."""
    form = affine_form(subscript)
    is_step = step is not None and form.factors == {IteratorReference(step.name): 1}
    return form.constant if is_step else None


# By tensor that statements of a block read: what they write, and whether they may read what an earlier step wrote.
_Flows: TypeAlias = Mapping[str, frozenset[tuple[str, bool]]]


def _flows(program: Program, block: int) -> _Flows:
    inside = [statement for statement in program.statements if statement.blocks[:1] == (block,)]
    writers: dict[str, list[Statement]] = {}
    for statement in inside:
        writers.setdefault(statement.target, []).append(statement)
    found: dict[str, set[tuple[str, bool]]] = {}
    for statement in inside:
        for own in _reads(statement):
            earlier = not _in_one_step(own, statement, writers.get(own.tensor, ()))
            found.setdefault(own.tensor, set()).add((statement.target, earlier))
    return {tensor: frozenset(targets) for tensor, targets in found.items()}


def _goes_in_steps(tensor: str, flows: _Flows) -> bool:
    """Whether what is written to a tensor in a block depends on what earlier steps wrote there."""
    reached, waiting = set[tuple[str, bool]](), [(tensor, False)]
    while waiting:
        name, before = waiting.pop()
        found = {(target, before or earlier) for target, earlier in flows.get(name, ())} - reached
        waiting.extend(found)
        reached |= found
    return (tensor, True) in reached


def _in_one_step(read: Read, statement: Statement, writers: Items[Statement]) -> bool:
    """Whether no step reads what other steps write, as far as one dimension of the tensor says."""
    for dimension, subscript in enumerate(read.subscripts):
        distance = _distance(subscript, statement.iterators[0])
        written = (_distance(own.subscripts[dimension], own.iterators[0]) for own in writers)
        if distance is not None and all(own == distance for own in written):
            return True
    return False


def _reads(statement: Statement) -> Iterator[Read]:
    for part in (statement.value, *statement.subscripts, *statement.conditions):
        yield from reads_in(part)


def _with(items: tuple[Item, ...], position: int, item: Item) -> tuple[Item, ...]:
    return (*items[:position], item, *items[position + 1 :])
