"""``Program``: what a definition means, with symbolic sizes; statements in order, ranges explicit, reductions whole.

Built by the front end (``tc.language``) or through ``tc.language.lower.builder``.  Expressions are fully typed: every
conversion is an explicit ``Cast``, names are resolved, calls of other definitions are inlined, and every write
of a new value has a tensor of its own (see *Values* in the design).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Final, TypeAlias, assert_never

from tc.base.errors import Span
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator

INDEX_TYPE: Final = ScalarType.INT64


@frozen
class TextOrigin:
    """A place in the source text of the definition."""

    span: Span


@frozen
class PythonOrigin:
    """A line of Python that called the builder."""

    file: str
    line: int


@frozen
class DerivedOrigin:
    """Made by the compiler from something else, for the reason given (an inlined call, a saved value)."""

    reason: str
    source: Origin


Origin: TypeAlias = TextOrigin | PythonOrigin | DerivedOrigin


# --- expressions ---------------------------------------------------------------------------------------------


@frozen
class Literal:
    """A constant of a type: bool for BOOL, int for integers, float for floating types."""

    value: bool | int | float
    type: ScalarType

    def __eq__(self, other: object) -> bool:
        # repr tells 0.0 from -0.0 and makes NaN equal to itself, as identical programs must be.
        return isinstance(other, Literal) and self.type is other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


@frozen
class IteratorReference:
    """The value of an iteration variable of the statement."""

    name: str

    @property
    def type(self) -> ScalarType:
        """That of indices."""
        return INDEX_TYPE


@frozen
class SizeReference:
    """A size variable of the definition (``M`` of ``float(M,K) A``)."""

    name: str

    @property
    def type(self) -> ScalarType:
        """That of indices."""
        return INDEX_TYPE


@frozen
class ScalarReference:
    """A scalar argument of the definition."""

    name: str
    type: ScalarType


@frozen
class Read:
    """One element of a tensor; ``subscripts`` have type INT64, and may contain reads (gathers)."""

    tensor: str
    subscripts: tuple[Expression, ...]
    type: ScalarType


@frozen
class Unary:
    """An operator with one operand."""

    operator: UnaryOperator
    operand: Expression
    type: ScalarType


@frozen
class Binary:
    """Operands have one common type; comparisons and logic have type BOOL.

    Integer ``/`` and ``%`` truncate; by zero they give 0.  ``&&`` and ``||`` evaluate their right operand only
    where the left one leaves the result open, so the left one guards the reads of the right one.
    """

    operator: BinaryOperator
    left: Expression
    right: Expression
    type: ScalarType


@frozen
class Select:
    """``condition ? then : otherwise``: only the chosen branch is evaluated, so the condition guards its reads."""

    condition: Expression
    then: Expression
    otherwise: Expression
    type: ScalarType


@frozen
class Cast:
    """Conversion: integers wrap, floating to integer truncates and saturates (NaN gives 0), to BOOL tests != 0."""

    operand: Expression
    type: ScalarType


@frozen
class Call:
    """A builtin of ``tc.language.program.functions``, by canonical name; arguments have type ``type``."""

    function: str
    arguments: tuple[Expression, ...]
    type: ScalarType


@frozen
class InRange:
    """Whether ``begin <= index < end``, for bounds that read tensors: ``where j in R(i):R(i+1)``.

    All parts have type INT64.  A bound that is less than 0 or greater than ``extent`` raises, as an index does that
    leaves its tensor, and counts as 0.
    """

    index: Expression
    begin: Expression
    end: Expression
    extent: Expression

    @property
    def type(self) -> ScalarType:
        """That of conditions."""
        return ScalarType.BOOL


Expression: TypeAlias = (
    Literal
    | IteratorReference
    | SizeReference
    | ScalarReference
    | Read
    | Unary
    | Binary
    | Select
    | Cast
    | Call
    | InRange
)


# Most of what is walked through.
_LEAVES: Final = frozenset({Literal, IteratorReference, SizeReference, ScalarReference})


def children(expression: Expression) -> tuple[Expression, ...]:
    """Direct subexpressions, in order of evaluation."""
    match expression:
        case Binary(_, left, right):
            return (left, right)
        case Read(_, subscripts):
            return subscripts
        case Unary(_, operand) | Cast(operand):
            return (operand,)
        case Select(condition, then, otherwise):
            return (condition, then, otherwise)
        case Call(_, arguments):
            return arguments
        case InRange(index, begin, end, extent):
            return (index, begin, end, extent)
        case Literal() | IteratorReference() | SizeReference() | ScalarReference():
            return ()
        case _:
            assert_never(expression)


def in_terms_of(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with iterators replaced by their values."""
    if isinstance(expression, IteratorReference):
        return values.get(expression.name, expression)
    return rebuild(expression, lambda child: in_terms_of(child, values))


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with ``change`` applied to its direct subexpressions."""
    match expression:
        case Literal() | IteratorReference() | SizeReference() | ScalarReference():
            return expression
        case Read(tensor, subscripts, type):
            return Read(tensor, tuple([change(s) for s in subscripts]), type)
        case Unary(operator, operand, type):
            return Unary(operator, change(operand), type)
        case Cast(operand, type):
            return Cast(change(operand), type)
        case Binary(operation, left, right, type):
            return Binary(operation, change(left), change(right), type)
        case Select(condition, then, otherwise, type):
            return Select(change(condition), change(then), change(otherwise), type)
        case Call(function, arguments, type):
            return Call(function, tuple([change(a) for a in arguments]), type)
        case InRange(index, begin, end, extent):
            return InRange(change(index), change(begin), change(end), change(extent))
        case _:
            assert_never(expression)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its subexpressions, parents first."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        if type(found) not in _LEAVES:
            waiting.extend(reversed(children(found)))


# --- declarations --------------------------------------------------------------------------------------------


def reads_in(expression: Expression) -> Iterator[Read]:
    """The reads in an expression, from left to right."""
    return (part for part in walk(expression) if isinstance(part, Read))


class Role(Enum):
    """Who provides the storage of a tensor, and which way its values go."""

    INPUT = "input"
    OUTPUT = "output"
    IN_OUT = "in-out"
    TEMPORARY = "temporary"


@frozen
class Tensor:
    """A tensor: argument, result or temporary; ``shape`` holds INT64 expressions over sizes and scalars."""

    name: str
    type: ScalarType
    shape: tuple[Expression, ...]
    role: Role
    origin: Origin = field(compare=False)


@frozen
class Scalar:
    """A scalar argument."""

    name: str
    type: ScalarType
    origin: Origin = field(compare=False)


class Reduction(Enum):
    """The associative and commutative operators of reducing statements."""

    ADD = "+"
    MULTIPLY = "*"
    MINIMUM = "min"
    MAXIMUM = "max"


@frozen
class IterationVariable:
    """``begin <= name < end``; bounds are INT64 expressions over sizes, scalars and earlier iterators."""

    name: str
    begin: Expression
    end: Expression


@frozen
class Owned:
    """What an instance of a scatter may write: only elements with ``begin <= subscript < end`` in a dimension.

    The bounds are INT64 expressions over iterators.  Compilers divide a scatter so; no definition says it.
    """

    dimension: int
    begin: Expression
    end: Expression


@frozen
class Statement:
    """For every point of the iteration domain: ``target[subscripts] = value`` or ``reduction=`` value.

    The domain is the set of integer points inside every range that also fulfil every condition.
    ``initialize``: the elements written are first set to the neutral element (``+=!``).
    A statement reads its whole right-hand side before it writes; a read of ``target`` inside ``value`` is
    element-wise (the same subscripts).  ``required``: accesses named by ``exists``; they must be in bounds.
    A subscript that reads a tensor scatters: its value must be inside the target, which is checked at run time, and it
    may be any element of its dimension, or any that is ``owned``.  ``distinct``: subscripts that are read, whose values
    are declared to differ from element to element of what they read.  ``counts``: what must be 1 for an instance, which
    is checked at run time: how often an index is one that is declared distinct.  ``atomic``: each instance combines its
    term into its element in one step that nothing comes between, so that others may do so at the same time.  Compilers
    share a scatter so; no definition says it.

    ``blocks``: the numbers of the blocks (``for t in 0:T { ... }``) that the statement stands in, outermost first; its
    first iterators are theirs, in the same order.  Statements of one block follow each other, and run in order for each
    of its iterations.  They may read what they wrote before, at any subscripts, and ``initialize`` starts anew in each.
    """

    name: str
    iterators: tuple[IterationVariable, ...]
    conditions: tuple[Expression, ...]
    target: str
    subscripts: tuple[Expression, ...]
    reduction: Reduction | None
    initialize: bool
    value: Expression
    required: tuple[Read, ...]
    origin: Origin = field(compare=False)
    blocks: tuple[int, ...] = ()
    owned: Owned | None = None
    distinct: tuple[Read, ...] = ()
    counts: tuple[Read, ...] = ()
    atomic: bool = False

    @property
    def sequence(self) -> tuple[IterationVariable, ...]:
        """The iterators of the blocks, outermost first."""
        return self.iterators[: len(self.blocks)]


def iterators_in(expressions: Iterable[Expression]) -> frozenset[str]:
    """Names of the iterators that occur in the expressions."""
    return frozenset(e.name for x in expressions for e in walk(x) if isinstance(e, IteratorReference))


def with_reads(statement: Statement, change: Callable[[Read], Read]) -> Statement:
    """The statement with each of its reads changed, those in subscripts first, wherever they stand."""

    def changed(expression: Expression) -> Expression:
        found = rebuild(expression, changed)
        return change(found) if isinstance(found, Read) else found

    required = map(changed, statement.required)
    return replace(
        statement,
        value=changed(statement.value),
        subscripts=tuple(map(changed, statement.subscripts)),
        conditions=tuple(map(changed, statement.conditions)),
        required=tuple(own for own in required if isinstance(own, Read)),
    )


def touches(statement: Statement, tensor: str) -> bool:
    """Whether the statement reads or writes the tensor."""
    reads = (e for x in (statement.value, *statement.subscripts) for e in walk(x) if isinstance(e, Read))
    return statement.target == tensor or any(read.tensor == tensor for read in reads)


@frozen
class Precondition:
    """A BOOL expression over sizes and scalars that a call must fulfil; ``message`` says what and why."""

    condition: Expression
    message: str = field(compare=False)
    origin: Origin = field(compare=False)


@frozen
class Program:
    """A whole definition.

    ``arguments``: names of tensors and scalars in the order of the parameter list.
    ``results``: names of tensors in the order of the ``->`` list.
    """

    name: str
    sizes: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    statements: tuple[Statement, ...]
    preconditions: tuple[Precondition, ...]
    source: str | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        # Graphs look programs up thousands of times, and to hash all expressions takes as long as all the rest.
        return hash((self.name, self.sizes, self.arguments, self.results, len(self.statements)))

    def tensor(self, name: str) -> Tensor:
        """The tensor called ``name``; KeyError if there is none."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)
