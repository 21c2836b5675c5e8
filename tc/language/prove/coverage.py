"""Every element of a value is written exactly once: proven with isl, for given sizes, or refused where no size fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import islpy as isl

from tc.base.frozen import frozen
from tc.language.algebra.polynomial import LEAST_SIZE
from tc.language.isl.affine import (
    Frame,
    access_relation,
    affine_function,
    between,
    frame_of,
    isl_name,
    iteration_domain,
)
from tc.language.isl.original_order import in_one_step
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import MAX_OPERATIONS, isl_context
from tc.language.program.program import Literal, Program, Reduction, Statement
from tc.language.program.specialization import Sizes
from tc.language.prove.leaving import with_least_parameters
from tc.language.prove.named_extents import has_named_extent
from tc.language.prove.remedies import named_size
from tc.language.prove.written import (
    WrittenValue,
    initialization,
    is_plainly_covered,
    is_single_valued,
    reads_target,
    writes_distinct_elements,
    written_values,
)
from tc.language.text.expression_text import expression_text


@frozen
class Problem:
    """An element that is written twice or not at all, and the statement to blame."""

    message: str
    hint: str
    statement: Statement
    is_overlap: bool


# The statements that give a value, each with the elements that it gives.
Given: TypeAlias = "Sequence[tuple[Statement, isl.Set | None]]"


def find_problems(
    program: Program,
    max_operations: int = MAX_OPERATIONS,
    sizes: Sizes = (),
    definition: Program | None = None,
) -> list[Problem]:
    """Elements written twice or not at all: for the sizes of a specialized program, else for all sizes from 1 on.

    ``sizes``: those of a specialized program that stay open; one value of them suffices for a problem.  What depends on
    other sizes that are still open, or is not affine in them, is no problem yet.  ``isl.Error`` when isl spends more
    than ``max_operations``.  ``definition``: the program before its sizes were known, in whose terms hints are written.
    """
    values = [value for value in written_values(program) if not is_plainly_covered(value)]
    single = [s for s in program.statements if is_single_valued(s) and not writes_distinct_elements(s)]
    if not single and not any(value.complete or len(value.initial) > 1 for value in values):
        return []
    with isl_context(max_operations) as context:
        prover = _Prover(program, context, sizes, definition or program)
        problems = [problem for statement in single for problem in prover.repeated(statement)]
        for value in values:
            if value.complete or len(value.initial) > 1:
                given = [(statement, prover.given(statement)) for statement in value.initial]
                problems.extend(prover.overlapping(value, given))
                if value.complete:
                    problems.extend(prover.uncovered(value, given))
        return problems


class _Prover:
    """Decides within one isl context; before sizes are known, a problem must be one for all of them."""

    def __init__(self, program: Program, context: isl.Context, sizes: Sizes, definition: Program) -> None:
        self.program = program
        self.definition = definition
        self.context = context
        self.sizes = sizes
        names = integer_parameters(program)
        self.parameters = names[len(sizes) :]
        self.possible = possible_parameters(program, context, names[len(sizes) :], LEAST_SIZE)

    def repeated(self, statement: Statement) -> Iterator[Problem]:
        """Elements that two instances of one statement write."""
        written = self._written(statement)
        if written is None:
            return
        pairs = written.apply_range(written.reverse())
        if statement.blocks:
            pairs = pairs.intersect(in_one_step(pairs.get_space(), len(statement.blocks)))
        pairs = pairs.subtract(isl.Map.identity(pairs.get_space()))
        found = self._witness(pairs.domain().apply(written))
        if found is not None:
            element = f"`{statement.target}{found.element}`"
            message = f"{element} is written by more than one instance of the statement{found.sizes}"
            hint = "reduce with `+=!`, `*=!`, `min=!` or `max=!`"
            if reads_target(statement):
                hint = (
                    f"combine with `+=`, `*=`, `min=` or `max=` what does not read `{statement.target}`, "
                    "or read a copy of it"
                )
            yield Problem(message, hint, statement, is_overlap=True)

    def given(self, statement: Statement) -> isl.Set | None:
        """The elements to which a statement gives a first value; None where they are not affine."""
        written = self._written(initialization(statement, self.program.tensor(statement.target).shape))
        return None if written is None else written.range()

    def overlapping(self, value: WrittenValue, given: Given) -> Iterator[Problem]:
        """Elements that two statements of one value give; those in blocks may write what is written already."""
        outside = [(statement, elements) for statement, elements in given if not statement.blocks]
        for (_, first), (second_statement, second) in combinations(outside, 2):
            if first is None or second is None:
                continue
            found = self._witness(first.intersect(second))
            if found is not None:
                element = f"`{value.tensor.name}{found.element}`"
                message = f"{element} is written twice{found.sizes}: here and by an earlier statement"
                hint = "write disjoint parts, or update with `+=`, or read the value before it is replaced"
                yield Problem(message, hint, second_statement, is_overlap=True)

    def uncovered(self, value: WrittenValue, given: Given) -> Iterator[Problem]:
        """Elements that no statement gives."""
        name = value.tensor.name
        frame = Frame(
            self.context,
            isl_name(name),
            tuple(f"d{d}" for d in range(len(value.tensor.shape))),
            self.parameters,
            self.sizes,
        )
        missing = frame.possible()
        for dimension, extent in zip(frame.iterators, value.tensor.shape, strict=True):
            inside = between(missing, dimension, Literal(0, extent.type), extent, frame)
            if inside is None:
                return
            missing = inside
        for _, elements in given:
            if elements is None:
                return
            missing = missing.subtract(elements)
        found = self._witness(missing)
        if found is not None:
            yield Problem(
                f"`{name}{found.element}` is never written{found.sizes}",
                named_size(e for statement in value.initial for e in statement.subscripts)
                or _whole(value, self.definition),
                next(s for s in (*value.initial, *self.program.statements) if s.target == name),
                is_overlap=False,
            )

    def _written(self, statement: Statement) -> isl.Map | None:
        """``{ statement[iterators] -> target[subscripts] }``; None where it is not affine."""
        frame = frame_of(statement, self.context, self.parameters, self.sizes)
        domain = iteration_domain(statement, frame)
        if domain is None or any(affine_function(s, frame) is None for s in statement.subscripts):
            return None
        extents: Sequence[int | None] = [None] * len(statement.subscripts)
        return access_relation(statement.target, statement.subscripts, extents, frame).intersect_domain(domain)

    def _witness(self, elements: isl.Set) -> Witness | None:
        """One of the elements, if there are some for all sizes, or for one that stays open."""
        names = (*self.parameters, *(name for name, _ in self.sizes))
        if self.sizes and not elements.is_empty():
            possible = Frame(self.context, "", (), self.parameters, self.sizes).possible().params()
            return witness_of(elements, elements.params(), names, possible)
        if elements.is_empty() or self.possible.is_empty() or not self.possible.is_subset(elements.params()):
            return None
        return witness_of(elements, self.possible, names)


def _whole(value: WrittenValue, definition: Program) -> str:
    """What gives a value all its elements: for one reduction, a statement before it; else another one for the rest."""
    name = value.tensor.name
    reduction = value.initial[0].reduction if len(value.initial) == 1 else None
    neutral = None if reduction is None else {Reduction.ADD: 0, Reduction.MULTIPLY: 1}.get(reduction)
    if neutral is None or not value.tensor.shape:
        return f"give `{name}` all its elements, for example with a second statement for the rest, or start at 0"
    names = [f"i{dimension}" for dimension in range(len(value.tensor.shape))]
    general = zip(definition.tensor(name).shape, value.tensor.shape, strict=True)
    extents = [given if has_named_extent(extent) else extent for extent, given in general]
    ranges = (f"{i} in 0:{expression_text(extent)}" for i, extent in zip(names, extents, strict=True))
    before = f"{name}({', '.join(names)}) = {neutral} where {', '.join(ranges)}"
    operator = "+=" if neutral == 0 else "*="
    return f"give `{name}` all its elements before, `{before}`, and write `{operator}` in the place of `{operator}!`"


@frozen
class Witness:
    """The subscripts of an element, ``(0, 3)``, and the sizes for which it is one, `` for N = 2``.

    No sizes where it is one for all of them.
    """

    element: str
    sizes: str


def witness_of(elements: isl.Set, values: isl.Set, names: Sequence[str], possible: isl.Set | None = None) -> Witness:
    """The first element that is there for all values of the parameters, or else for the least.

    ``values``: for each of which there is an element.  ``possible``: all that there may be, where these are more.
    ``names``: of the parameters.
    """
    possible = values if possible is None else possible
    chosen = elements.intersect_params(values)
    somewhere = chosen.project_out_all_params()
    everywhere = somewhere.subtract(somewhere.intersect_params(values).subtract(chosen).project_out_all_params())
    if not possible.is_subset(values):
        everywhere = isl.Set.empty(everywhere.get_space())
    found = with_least_parameters(chosen, len(names)) if everywhere.is_empty() else everywhere
    point = found.lexmin().sample_point()
    subscripts = [str(point.get_coordinate_val(isl.dim_type.set, d)) for d in range(elements.dim(isl.dim_type.set))]
    relevant = elements.gist_params(possible)
    sizes = [
        f"{name} = {point.get_coordinate_val(isl.dim_type.param, position)}"
        for position, name in enumerate(names if everywhere.is_empty() else ())
        if relevant.involves_dims(isl.dim_type.param, position, 1)
    ]
    return Witness(f"({', '.join(subscripts)})", f" for {', '.join(sizes)}" if sizes else "")
