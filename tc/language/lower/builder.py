"""Programs made in Python, without a text: the way in for gradients, captured code and imported graphs.

    builder = ProgramBuilder("mm")
    m, n, k = builder.size("M"), builder.size("N"), builder.size("K")
    a = builder.argument("A", ScalarType.FLOAT32, (m, k))
    b = builder.argument("B", ScalarType.FLOAT32, (k, n))
    c = builder.tensor("C", ScalarType.FLOAT32, rank=2)
    i, j, r = map(IteratorReference, "ijr")
    product = Binary(BinaryOperator.MULTIPLY, a(i, r), b(r, j), ScalarType.FLOAT32)
    builder.statement(c(i, j), product, reduction=Reduction.ADD, initialize=True)
    program = builder.build(["C"])

Ranges that are not given are inferred, and the rules are those of the language, with one difference: here every
value has a tensor of its own from the start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from tc.base.errors import Diagnostic, SemanticError, Span
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.algebra.polynomial import Atoms
from tc.language.draft.draft import Bounds, Draft, Places
from tc.language.draft.requirements import Requirements
from tc.language.draft.rules import check_rules, check_where, iteration_order
from tc.language.draft.typed import Strength, Typed
from tc.language.lower.assemble import Assembly, Head
from tc.language.program.program import (
    INDEX_TYPE,
    Expression,
    Literal,
    Origin,
    Program,
    PythonOrigin,
    Read,
    Reduction,
    Role,
    Scalar,
    ScalarReference,
    SizeReference,
    Tensor,
    iterators_in,
    walk,
)
from tc.language.program.report import Report
from tc.language.program.type_rules import find_type_error
from tc.language.program.written_elements import chosen_by
from tc.language.prove.prove import prove_values
from tc.language.ranges.ranges import Known, infer_ranges


@frozen
class TensorHandle:
    """A tensor of a program under construction; called with subscripts it is an access."""

    name: str
    type: ScalarType
    rank: int

    def __call__(self, *subscripts: Expression | int) -> Read:
        """An access with these subscripts."""
        return Read(self.name, tuple(map(_expression, subscripts)), self.type)


def _expression(value: Expression | int) -> Expression:
    return Literal(value, INDEX_TYPE) if isinstance(value, int) else value


class ProgramBuilder:
    """Collects declarations and statements, then makes a ``Program`` of them.

    Every method raises ``SemanticError`` for what breaks a rule; ``build`` raises ``RangeError`` for ranges.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sizes: list[str] = []
        self._scalars: dict[str, Scalar] = {}
        self._inputs: dict[str, Tensor] = {}
        self._tensors: dict[str, TensorHandle] = {}
        self._arguments: list[str] = []
        self._drafts: list[Draft] = []
        self._atoms = Atoms()
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._incoming: set[str] = set()

    # --- declarations ----------------------------------------------------------------------------------------

    def size(self, name: str) -> SizeReference:
        """A size variable; some argument must have it as an extent."""
        if name not in self._sizes:
            self._require_new(name)
            self._sizes.append(name)
        return SizeReference(name)

    def scalar(self, name: str, type: ScalarType) -> ScalarReference:
        """The next argument: a scalar."""
        self._require_new(name)
        self._scalars[name] = Scalar(name, type, _caller())
        self._arguments.append(name)
        return ScalarReference(name, type)

    def argument(self, name: str, type: ScalarType, shape: Sequence[SizeReference | int]) -> TensorHandle:
        """The next argument: a tensor, with sizes or numbers as extents."""
        self._require_new(name)
        extents = tuple(map(_expression, shape))
        self._inputs[name] = Tensor(name, type, extents, Role.INPUT, _caller())
        self._tensors[name] = TensorHandle(name, type, len(shape))
        self._arguments.append(name)
        return self._tensors[name]

    def tensor(self, name: str, type: ScalarType, rank: int) -> TensorHandle:
        """A result or a temporary: one value, whose shape follows from the statements that write it."""
        self._require_new(name)
        self._tensors[name] = TensorHandle(name, type, rank)
        return self._tensors[name]

    def _require_new(self, name: str) -> None:
        if name in self._sizes or name in self._scalars or name in self._tensors:
            raise _error(f"`{name}` is declared already")

    # --- statements ------------------------------------------------------------------------------------------

    def statement(
        self,
        target: Read,
        value: Expression,
        *,
        reduction: Reduction | None = None,
        initialize: bool = False,
        ranges: Mapping[str, tuple[Expression | int, Expression | int]] | None = None,
        extents: Mapping[int, Expression | int] | None = None,
        conditions: Iterable[Expression] = (),
        required: Iterable[Read] = (),
        distinct: Iterable[Read] = (),
    ) -> None:
        """``target = value``, or ``target reduction= value``, for all points of the iteration domain.

        ``ranges``: begin and end of iterators that are not to be inferred.  ``extents``: of dimensions of the target
        whose subscripts read tensors.  ``conditions``: BOOL expressions that
        every instance fulfils.  ``required``: accesses that must stay inside although nothing reads them.
        ``distinct``: subscripts of the target that are read, all of whose values differ.
        """
        report = Report()
        conditions, required = tuple(conditions), tuple(required)
        bounds = {n: Bounds(_expression(b), _expression(e), None) for n, (b, e) in (ranges or {}).items()}
        whole = {dimension: _expression(extent) for dimension, extent in (extents or {}).items()}
        limits = [*(e for b in bounds.values() for e in (b.begin, b.end)), *whole.values()]
        self._check_types(target, value, conditions, (*required, *limits))
        if initialize and reduction is None:
            raise _error("only a reduction has a neutral element to initialize with")
        order = iteration_order([*target.subscripts, value, *required, *conditions], bounds)
        clash = next((n for n in order if n in self._sizes or n in self._scalars or n in self._tensors), None)
        if clash is not None:
            raise _error(f"the iterator `{clash}` has the name of something else")
        check_where((*limits, *conditions), None, report)
        left = chosen_by(target.subscripts)
        draft = Draft(
            number=len(self._drafts),
            name=target.tensor,
            target=target.tensor,
            subscripts=target.subscripts,
            reduction=reduction,
            initialize=initialize,
            value=Typed(value, Strength.STRONG, Span(0, 0)),
            order=order,
            reduced=tuple(name for name in order if name not in left),
            bounds=bounds,
            extents=whole,
            conditions=tuple(c for c in conditions if iterators_in((c,))),
            requirements=tuple((c, None) for c in conditions if not iterators_in((c,))),
            required=required,
            distinct=tuple(distinct),
            places=Places(),
            origin=_caller(),
        )
        draft = check_rules(draft, self._atoms, report)
        self._track(draft, report)
        report.raise_if_any(None)
        self._drafts.append(draft)

    def _check_types(
        self, target: Read, value: Expression, conditions: Iterable[Expression], others: Iterable[Expression]
    ) -> None:
        ranks = {name: (handle.type, handle.rank) for name, handle in self._tensors.items()}
        for expression in (target, value, *conditions, *others):
            wrong = find_type_error(expression, ranks)
            if wrong is not None:
                raise _error(wrong)
            for leaf in walk(expression):
                if isinstance(leaf, SizeReference) and leaf.name not in self._sizes:
                    raise _error(f"unknown size `{leaf.name}`")
                if isinstance(leaf, ScalarReference) and self._scalar_type(leaf.name) is not leaf.type:
                    raise _error(f"there is no scalar argument `{leaf.name}` of type {leaf.type}")
        if value.type is not target.type:
            raise _error(f"`{target.tensor}` is {target.type}, the value is {value.type}; cast it")
        if any(condition.type is not ScalarType.BOOL for condition in conditions):
            raise _error("a condition must be bool")
        if target.tensor in self._inputs:
            raise _error(f"`{target.tensor}` is an argument, and arguments are never written")

    def _scalar_type(self, name: str) -> ScalarType | None:
        scalar = self._scalars.get(name)
        return None if scalar is None else scalar.type

    def _track(self, draft: Draft, report: Report) -> None:
        """Values: what is read must be written before, or come in; a value is not started again once it was read."""
        reads = {e.tensor for e in walk(draft.value.expression) if isinstance(e, Read)} - self._inputs.keys()
        updates = draft.target in reads or not (draft.initialize or draft.reduction is None)
        self._incoming |= (reads | ({draft.target} if updates else set())) - self._written
        if not updates and draft.target in self._read:
            report.error(f"`{draft.target}` was read already: a new value needs a tensor of its own", None)
        self._read |= reads - {draft.target}
        self._written.add(draft.target)

    # --- the program -----------------------------------------------------------------------------------------

    def build(self, results: Sequence[str]) -> Program:
        """The program; a result that is read before it is written is passed in through ``out=``."""
        report = Report()
        for name in results:
            if name not in self._written:
                report.error(f"the result `{name}` is never written", None)
        extents = [extent for tensor in self._inputs.values() for extent in tensor.shape]
        sizes = tuple(dict.fromkeys(extent.name for extent in extents if isinstance(extent, SizeReference)))
        for name in self._sizes:
            if name not in sizes:
                report.error(f"no argument has the size `{name}` as an extent", None)
        for name in sorted(self._incoming - set(results)):
            report.error(f"temporary `{name}` is read before it is written", None)
        for name in sorted({d.target for d in self._drafts if d.reduction is not None} - set(results)):
            if self._tensors[name].type.is_half:
                report.error(
                    f"temporary `{name}` holds a reduction of halves, which stays float32",
                    None,
                    "make it FLOAT32, and cast where a result stores what is computed from it",
                )
        report.raise_if_any(None)
        atoms = Atoms(sizes, self._scalars)
        requirements = Requirements(atoms)
        writers: dict[str, list[int]] = {}
        for draft in self._drafts:
            writers.setdefault(draft.target, []).append(draft.number)
        known = Known(
            shapes={name: tensor.shape for name, tensor in self._inputs.items()},
            ranks={name: self._tensors[name].rank for name in writers},
            writers=writers,
            broken=frozenset(),
            blocked=frozenset(),
            sizes=sizes,
        )
        ranges = infer_ranges(self._drafts, known, atoms, requirements, report)
        report.raise_if_any(None)
        head = Head(
            self._name,
            sizes,
            tuple(self._scalars.values()),
            self._inputs,
            tuple(self._arguments),
            tuple(results),
        )
        types = {name: self._tensors[name].type for name in writers}
        assembly = Assembly(head, types, frozenset(self._incoming), (), ranges, requirements, atoms)
        program = assembly.program(self._drafts, None)
        prove_values(program, report)
        report.raise_if_any(None)
        return program


def _error(message: str) -> SemanticError:
    return SemanticError(Diagnostic(message))


def _caller() -> Origin:
    """The line of Python outside this file that called the builder."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return PythonOrigin(frame.f_code.co_filename, frame.f_lineno)
