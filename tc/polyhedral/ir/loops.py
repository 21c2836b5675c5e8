"""The loop program that code generation prints: what isl's AST becomes, free of isl objects.

Index expressions are over int64.  Division and remainder say which of C's or isl's they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, assert_never

from tc.base.dots import MatrixShape
from tc.base.frozen import frozen
from tc.base.grid import WARP
from tc.base.types import ScalarType
from tc.language.program.program import Expression, InRange, Owned, Read, Reduction
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.ir.streams import Stream
from tc.polyhedral.ir.swizzle import Swizzle
from tc.polyhedral.ir.totals import Fold, Total


class IndexOperator(Enum):
    """Operations of index expressions and guards; all operands are int64 (or truth values, for logic)."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    NEGATE = "neg"
    MINIMUM = "min"
    MAXIMUM = "max"
    EXACT_DIVIDE = "exact/"  # the remainder is known to be 0
    FLOOR_DIVIDE = "floor/"  # rounds to minus infinity; the divisor is positive
    NONNEGATIVE_DIVIDE = "nonnegative/"  # the dividend is known to be nonnegative, the divisor positive
    NONNEGATIVE_REMAINDER = "nonnegative%"  # likewise
    ZERO_REMAINDER = "zero%"  # only compared with 0; the dividend may be negative
    AND = "&&"
    OR = "||"
    SELECT = "?:"
    EQUAL = "=="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="


@frozen
class IndexLiteral:
    """A number."""

    value: int


@frozen
class IndexVariable:
    """A loop iterator, or a size that stayed symbolic."""

    name: str


@frozen
class IndexOperation:
    """An operator with its operands."""

    operator: IndexOperator
    operands: tuple[IndexExpression, ...]


IndexExpression: TypeAlias = IndexLiteral | IndexVariable | IndexOperation


def variables(expression: IndexExpression) -> set[str]:
    """The names of all variables of an index expression."""
    match expression:
        case IndexLiteral():
            return set()
        case IndexVariable(name):
            return {name}
        case IndexOperation(_, operands):
            return set().union(*(variables(operand) for operand in operands))
        case _:
            assert_never(expression)


def conjuncts(condition: IndexExpression) -> Iterator[IndexExpression]:
    """What must hold so that a condition holds."""
    match condition:
        case IndexOperation(IndexOperator.AND, operands):
            for operand in operands:
                yield from conjuncts(operand)
        case _:
            yield condition


@frozen
class StatementBody:
    """What one instance of a statement does: ``target[subscripts] (reduction)= value``.

    ``iterators`` name the variables in ``subscripts`` and ``value``.  ``terms``: of a sum, instances that add to one
    element at most before it is begun anew, wherever that is kept; None where no bound is known.  ``begun``: each value
    of so many iterators, the first ones, begins the reduction anew.  ``owned``: of the elements that data choose, those
    that it writes.  ``counts``: what must be 1, or a fault is noted.  ``atomic``: nothing comes between the read of the
    element and the write.
    """

    name: str
    iterators: tuple[str, ...]
    target: str
    subscripts: tuple[Expression, ...]
    reduction: Reduction | None
    value: Expression
    terms: int | None = None
    owned: Owned | None = None
    counts: tuple[Read, ...] = ()
    atomic: bool = False
    begun: int = 0


class LoopKind(Enum):
    """How the iterations of a loop run."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"  # chunks of it may run on different cores
    VECTOR = "vector"  # independent iterations: the compiler may run them in lanes
    REDUCTION = "reduction"  # lanes may keep partial results of the one reducing statement inside
    REGISTER = "register"  # rows of a register tile: each iteration has registers of its own
    UNROLLED = "unrolled"  # the compiler of the target unrolls it
    FULLY_UNROLLED = "fully_unrolled"  # here: a copy of the body for every iteration (``generate.unroll_copies``)
    LANES = "lanes"  # an iteration for every lane of a warp, all of which combine what the others have
    BLOCK = "block"  # blocks of a grid
    THREAD = "thread"  # threads of a block
    LAUNCH = "launch"  # around blocks: the kernels inside are launched for each iteration, in order

    @property
    def is_mapped(self) -> bool:
        """Whether the hardware runs all iterations, and the value of the iterator says which one this is."""
        return self in (LoopKind.BLOCK, LoopKind.THREAD)


LINE_BYTES: Final = 64
# Rows of register tiles at borders that are written out with the steps of a reduction, in all copies together.
MOST_ROWS_AT_BORDERS: Final = 512
LEAST_ROWS_AT_BORDERS: Final = 8  # fewer count as so many: what is around them is text, too


@frozen
class ReadRange:
    """A range that reads tensors, outside of which iterations of a loop do nothing.

    Instances in the iteration ``v`` that have it have an index of ``factor * v + low`` to ``factor * v + high``.
    ``statement`` and ``arguments``: an instance for which the bounds can be read before the loop.
    """

    statement: str
    arguments: tuple[IndexExpression, ...]
    inside: InRange
    factor: int
    low: IndexExpression
    high: IndexExpression


@frozen
class Loop:
    """``for (iterator = lower; iterator <= upper; iterator += step) body``.

    ``totals``: the sums that are begun with 0 before the loop, added to totals while it runs, and to what they were
    before when it ends.  ``folds``: made at the end of iterations.  ``ranges``: all that instances inside have, beyond
    which nothing need run.  ``stream``: how two sorts of threads may run it.
    """

    iterator: str
    lower: IndexExpression
    upper: IndexExpression
    step: int
    kind: LoopKind
    body: LoopTree
    totals: tuple[Total, ...] = ()
    folds: tuple[Fold, ...] = ()
    ranges: tuple[ReadRange, ...] = ()
    stream: Stream | None = None


@frozen
class Guard:
    """A branch: ``then`` where the condition holds, ``otherwise`` (or nothing) where it does not."""

    condition: IndexExpression
    then: LoopTree
    otherwise: LoopTree | None


@frozen
class Block:
    """Loop trees that run one after the other."""

    children: tuple[LoopTree, ...]


@frozen
class Leaf:
    """A node without others inside."""


@dataclass(frozen=True, slots=True)
class Scheduled(Leaf):
    """What the schedule calls ``statement``, at ``arguments``: the values of its iterators."""

    statement: str
    arguments: tuple[IndexExpression, ...]


@dataclass(frozen=True, slots=True)
class Instance(Scheduled):
    """Runs the statement.

    ``nontemporal``: it may store past the caches.  ``prefetched``: arguments of a later instance, for which the row
    that a gather reads is prefetched; none without.  ``holds``: ranges of the statement that the instance is inside of.
    """

    nontemporal: bool = False
    prefetched: tuple[IndexExpression, ...] = ()
    holds: tuple[InRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy(Instance):
    """Runs a statement that only copies, into a buffer or out of one.

    ``group``: None of a synchronous copy.  An asynchronous one may be complete as late as behind the barrier called so,
    which waits for its group.  ``gathers_for``: the statement whose gather it makes in advance.
    """

    group: str | None = None
    gathers_for: str | None = None


@dataclass(frozen=True, slots=True)
class Barrier(Scheduled):
    """All threads of a block wait for each other.

    ``pending``: first, the asynchronous copies since the last barrier are committed as a group, and the thread waits
    for all groups but the last so many; None in programs without asynchronous copies.  ``fenced``: what the thread
    wrote to shared memory before is seen by matrix instructions that read it by themselves, and those before have
    ended (PTX: ``fence.proxy.async``, ``wgmma.wait_group``).
    """

    pending: int | None = None
    fenced: bool = False


class Use(Enum):
    """What prefetched lines are for: what is read later, by another tile, stays in the second-level cache."""

    LATER = "to read later"
    SOON = "to read soon"
    STORE = "to store"


@dataclass(frozen=True, slots=True)
class Prefetch(Leaf):
    """Prefetches so many lines of the cache from the element ``offset`` of a tensor on, wherever that is.

    It changes nothing but the time that a program takes.
    """

    tensor: str
    offset: IndexExpression
    lines: int
    use: Use = Use.LATER


class Lay(Enum):
    """How the elements of a fragment lie in shared memory, eight by eight (PTX: ``ldmatrix``)."""

    ROWS = "rows"  # those that two lanes next to each other hold are side by side
    COLUMNS = "columns"  # those of lanes four apart are
    APART = "apart"


@frozen
class Fragment:
    """What each lane of a warp holds of an operand of a matrix instruction; ``type``: PTX's name for that of elements.

    Element ``element`` of register ``register`` for block ``block`` of the operand: ``tensor[subscripts]``, in terms of
    these names and of the iterators around.
    """

    tensor: str
    type: str
    subscripts: tuple[IndexExpression, ...]
    lay: Lay


BLOCK, REGISTER, ELEMENT = "block", "register", "element"


@frozen
class SharedMatrix:
    """An operand that instructions of four warps read from swizzled shared memory by themselves.

    ``type``: as above.  ``tensor[subscripts]``: the first element, in terms of the iterators around and of ``chunks``.
    ``stride``: bytes from eight rows in memory to the next ones; ``leading``: from one panel to the next.  ``turned``:
    steps count rows in memory, and do not lie along them (PTX: *Matrix Descriptor Format*).
    """

    tensor: str
    type: str
    subscripts: tuple[IndexExpression, ...]
    stride: int
    leading: int
    turned: bool


@dataclass(frozen=True, slots=True)
class Matrices(Leaf):
    """Matrix instructions by which the lanes of a warp, or of a group of four warps, run their nests together.

    ``nest``: loops of each lane around the one instance that they run.  Their iterators: ``rows``, eight apart;
    ``columns``, eight apart, None where there are eight; the ``pair`` of neighbours; and the ``steps`` of the sum.
    ``lanes``: the iterators of the threads along x, y and z: the lane is ``x + 4 * (y % 8)``, in a group
    ``x + 4 * y + 32 * (z % 4)``.  Of points that guards in the nest leave out, sums are computed, too.
    """

    shape: MatrixShape
    lanes: tuple[str, ...]
    nest: Loop | Guard
    rows: str
    columns: str | None
    pair: str
    steps: str


@dataclass(frozen=True, slots=True)
class Mma(Matrices):
    """Those of warps.

    ``limit``: how many steps there are, where these may not be all of a block; what is held for others is taken for 0.
    """

    left: Fragment
    right: Fragment
    limit: IndexExpression | None = None


@dataclass(frozen=True, slots=True)
class GroupMma(Matrices):
    """Those of groups, ``chunks`` of them one behind the other: the outermost iterator of the nest.

    ``awaited``: they have ended when the node has; else at the next barrier.
    """

    left: SharedMatrix
    right: SharedMatrix
    chunks: str
    awaited: bool = True


class Sharing(Enum):
    """Which threads have one array of a buffer together."""

    THREAD = "thread"  # each one has its own
    LANES = (
        "lanes"  # those along x; subscript n of the last dimension is in a register of thread n, for its warp to see
    )
    BLOCK = "block"  # all threads of a block, in shared memory


# Longer loops are not unrolled on GPUs, and no array that they go through is in registers.
MOST_UNROLLED: Final = 64
# Threads of a warp, which exchange what is in registers.
LANES: Final = WARP


@frozen
class Buffer:
    """A tensor as a kernel sees it.

    ``writable``: some statement stores into it.  ``sharing``: who sees one array, if an allocation brings it.
    ``swizzle``: what places in shared memory follow from, besides the layout.
    """

    name: str
    layout: Layout
    writable: bool
    sharing: Sharing = Sharing.THREAD
    swizzle: Swizzle | None = None

    @property
    def shared(self) -> bool:
        """Whether it lies in memory that the threads of a block share."""
        return self.sharing is Sharing.BLOCK


@frozen
class Allocation:
    """Storage for one run of ``body``; it holds nothing yet when that starts."""

    buffer: Buffer
    body: LoopTree


LoopTree: TypeAlias = Loop | Guard | Block | Allocation | Instance | Copy | Barrier | Prefetch | Mma | GroupMma


def leaves(root: LoopTree) -> Iterator[Leaf]:
    """All of them, in order of the text."""
    waiting = [root]
    while waiting:
        tree = waiting.pop()
        match tree:
            case Leaf():
                yield tree
            case Block(children):
                waiting += reversed(children)
            case Guard(_, then, otherwise):
                waiting += (then,) if otherwise is None else (otherwise, then)
            case Loop() | Allocation():
                waiting.append(tree.body)
            case _:
                assert_never(tree)


def barriers(root: LoopTree) -> frozenset[str]:
    """The names of the barriers in the loops."""
    return frozenset(leaf.statement for leaf in leaves(root) if isinstance(leaf, Barrier))


@frozen
class LoopProgram:
    """One kernel: buffers in the order of its parameters, scalar parameters, bodies by name, and the loops.

    ``promoted``: the buffers that allocations in the loops bring.  ``checked``: gathers report out-of-range indices
    through the kernel's fault flag instead of reading.  ``resident``: blocks that must find room on a multiprocessor at
    a time; ``multiprocessors``: those of the device, 0 of a processor.  ``sizes``: the symbolic ones, parameters behind
    the scalars.  ``blocked``: the loops with long sums in blocks, as they are printed, once they are found; the printer
    proves that they are.
    """

    name: str
    buffers: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    scalars: tuple[tuple[str, ScalarType], ...]
    bodies: tuple[StatementBody, ...]
    root: LoopTree
    checked: bool
    promoted: tuple[Buffer, ...] = ()
    resident: int = 1
    multiprocessors: int = 0
    sizes: Sizes = ()
    blocked: LoopTree | None = None
