"""``Prediction``: how long the kernels of a call take on a device that need not be there, and what limits them."""

from __future__ import annotations

from enum import Enum

from tc.base.frozen import frozen
from tc.prediction.demand import Demand


class Limit(Enum):
    """What a kernel waits for most."""

    FLOATS = "float32 arithmetic"
    INTEGERS = "integers and addresses"
    SPECIALS = "special functions"
    DOUBLES = "float64 arithmetic"
    TENSORS = "tensor cores"
    ISSUE = "instructions"
    SHARED = "shared memory"
    LINES = "accesses to lines"
    CACHE = "second-level cache"
    MEMORY = "memory"
    LATENCY = "latency"
    LAUNCH = "launch"


@frozen
class KindPrediction:
    """Blocks that ask for the same: how many, seconds of one that is alone, and what the pipes take of its time."""

    count: int
    seconds: float
    limit: Limit
    shares: tuple[tuple[Limit, float], ...]
    demand: Demand


@frozen
class KernelPrediction:
    """One kernel, launched ``launches`` times, each of which takes ``seconds``.

    ``floor``: what no kernel that does so many multiply-adds and moves so many bytes falls below.  ``waves``: how often
    all multiprocessors are filled with blocks, the last time maybe not all of them.  ``resident``: blocks that a
    multiprocessor has at a time; ``occupancy``: the part of its threads that they are.  ``in_flight``: bytes that are
    under way to a multiprocessor on average.  ``kinds``: the most frequent kind of blocks first; others are edges.
    """

    seconds: float
    floor: float
    limit: Limit
    shares: tuple[tuple[Limit, float], ...]
    blocks: int
    launches: int
    waves: float
    resident: int
    occupancy: float
    in_flight: float
    kinds: tuple[KindPrediction, ...]

    @property
    def edges(self) -> tuple[KindPrediction, ...]:
        """Kinds of blocks that are fewer than the most frequent one."""
        return self.kinds[1:]

    def __str__(self) -> str:
        named = ", ".join(f"{limit.value} {share:.0%}" for limit, share in self.shares[:2])
        edges = max((kind.seconds for kind in self.edges), default=0.0)
        edge = f"; edge blocks {_microseconds(edges)}" if edges else ""
        return f"{_microseconds(self.seconds)}: {named or self.limit.value}{edge}"


@frozen
class Prediction:
    """A call on a device, by its name: ``kernels`` in the order in which they run, and ``launch``, what starting them
    takes of ``seconds``.
    """

    device: str
    kernels: tuple[KernelPrediction, ...]
    launch: float

    @property
    def seconds(self) -> float:
        """All kernels, one after the other."""
        return self.launch + sum(kernel.launches * kernel.seconds for kernel in self.kernels)

    @property
    def floor(self) -> float:
        """Of all kernels, without what it takes to start them."""
        return sum(kernel.launches * kernel.floor for kernel in self.kernels)

    @property
    def limit(self) -> Limit:
        """That of the longest kernel, unless starting kernels takes longer."""
        if not self.kernels:
            return Limit.LAUNCH
        longest = max(self.kernels, key=lambda kernel: kernel.launches * kernel.seconds)
        return longest.limit if longest.launches * longest.seconds > self.launch else Limit.LAUNCH

    def __str__(self) -> str:
        kernels = "; then ".join(map(str, self.kernels))
        return f"predicted {_microseconds(self.seconds)} on {self.device}: {kernels}"


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} us"
