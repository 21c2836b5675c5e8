"""From what a kernel asks for to the time that it takes: pipes, latencies, waves of blocks, and levels of memory.

A multiprocessor with several blocks takes as long as its busiest pipe, or as one thread of a block from its beginning
to its end, with all that it waits for (Hong and Kim, ISCA 2009; Volkov, UCB/EECS-2016-143); blocks come in waves; all
multiprocessors share the second-level cache and memory (roofline).  What happens at the same time overlaps, but not
altogether: times are combined by a norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.base.grid import WARP
from tc.prediction.counts import BlockKind, KernelCount
from tc.prediction.demand import LINE, SECTOR, Demand
from tc.prediction.prediction import KernelPrediction, KindPrediction, Limit, Prediction
from tc.targets.devices import Device
from tc.targets.multiprocessor import MULTIPROCESSORS

# Instructions that a multiprocessor issues in a clock.
_SCHEDULERS: Final = 4
_ARITHMETIC: Final = (
    *(Limit.FLOATS, Limit.INTEGERS, Limit.SPECIALS),
    *(Limit.DOUBLES, Limit.TENSORS, Limit.ISSUE),
)
# Shares that are told.
_NAMED: Final = 0.01
# Bytes of a clock between a multiprocessor and the second-level cache.
_CACHE_PORT: Final = 64
# Most registers of a thread, and what threads have beside arrays of their own.
_MOST_REGISTERS: Final = 255
_OTHER_REGISTERS: Final = 40


Shares: TypeAlias = tuple[tuple[Limit, float], ...]


@frozen
class Constants:
    """What microbenchmarks and data sheets do not tell for each device, in the order of how well it is known.

    Clocks of a thread: until something arrives from ``memory``, ``cache`` or ``shared`` memory, and at a ``barrier``
    (the first three from microbenchmarks of an H100; that of memory fitted between 600 and 1,100, with its misses of
    the address cache); from one ``operation`` to the next that waits for it (arithmetic of all architectures since
    Volta); of each instruction that a warp ``issue``-s, and of a ``branch`` that some lanes take (fitted).

    Seconds: ``launch`` of a call of an empty kernel (measured on an H200, between events), ``next_launch`` of each
    further kernel, and ``start`` of every kernel until it is under way, with cold caches of instructions (fitted).

    ``streaming``: the part of the bandwidth of memory that kernels get (measured: 0.94 reading, 0.83 copying).  The
    others are exponents of norms, 1 for a sum, infinite for a maximum (fitted): ``overlap`` of arithmetic and accesses
    of code that reads operands when it needs them, ``ahead`` of code that reads them before, ``matrix`` of code with
    matrix instructions, which warps do not wait for (set so that it comes out between the rungs with and without such
    reads of https://github.com/gau-nernst/learn-cuda, 167 and 221 of 312 teraflops on an A100), ``rounds`` of the
    busiest pipe and the path of one thread, ``levels`` of the multiprocessors, the cache and memory.
    """

    operation: float = 4.0
    cache: float = 270.0
    shared: float = 30.0
    barrier: float = 30.0
    memory: float = 700.0
    issue: float = 1.5
    branch: float = 12.0
    launch: float = 3.2e-6
    next_launch: float = 0.5e-6
    start: float = 1.2e-6
    streaming: float = 0.9
    overlap: float = 1.0
    ahead: float = 4.0
    matrix: float = 2.0
    rounds: float = 1.8
    levels: float = 2.5


FITTED: Final = Constants()


@frozen
class Use:
    """What the assembler says of a kernel: registers of a thread."""

    registers: int


def predict(
    counts: Sequence[KernelCount],
    device: Device,
    uses: Sequence[Use] | None = None,
    *,
    cold: bool = True,
    constants: Constants = FITTED,
) -> Prediction:
    """The time of a call; ``uses``: of the kernels, estimated where they are None; ``cold``: nothing that the call
    reads is in a cache before.
    """
    found = tuple(
        predict_kernel(count, device, None if uses is None else uses[number], cold=cold, constants=constants)
        for number, count in enumerate(counts)
    )
    launches = sum(count.launches for count in counts)
    return Prediction(device.name, found, constants.launch + max(0, launches - 1) * constants.next_launch)


def estimated_use(count: KernelCount) -> Use:
    """Registers of a thread as far as its arrays tell: as many as there is room for."""
    wanted = count.kept + _OTHER_REGISTERS
    most = min(_MOST_REGISTERS, (1 << 16) // max(count.threads, WARP) // 8 * 8)
    return Use(min(wanted, most))


def predict_kernel(
    count: KernelCount, device: Device, use: Use | None = None, *, cold: bool = True, constants: Constants = FITTED
) -> KernelPrediction:
    """The time of one launch of a kernel, without that of starting it."""
    own = use or estimated_use(count)
    machine = MULTIPROCESSORS[device.architecture]
    resident = max(1, machine.resident(count.threads, own.registers, count.shared))
    model = _Model(count, device, resident, constants, cold)
    return model.kernel(machine.occupancy(count.threads, own.registers, count.shared))


@frozen
class _Model:
    count: KernelCount
    device: Device
    resident: int
    constants: Constants
    cold: bool

    def kernel(self, occupancy: float) -> KernelPrediction:
        """The prediction."""
        device, total = self.device, self.count.demand
        computing = self._computing() / device.clock
        cache = SECTOR * self._sectors(total) / (device.cache_bandwidth * device.clock)
        memory = self._memory_bytes(total) / (device.bandwidth * self.constants.streaming)
        seconds = _norm((computing, cache, memory), self.constants.levels) + self.constants.start
        shares = self._shares(total, seconds, cache, memory)
        kinds = tuple(self._kind(kind) for kind in self.count.kinds)
        return KernelPrediction(
            seconds=seconds,
            floor=self._floor(total),
            limit=shares[0][0],
            shares=shares,
            blocks=self.count.blocks,
            launches=self.count.launches,
            waves=self.count.blocks / (device.multiprocessors * self.resident),
            resident=self.resident,
            occupancy=occupancy,
            in_flight=self._in_flight(total),
            kinds=kinds,
        )

    # --- one block

    def pipes(self, demand: Demand) -> Mapping[Limit, float]:
        """Clocks of a multiprocessor that each pipe takes for what is asked for."""
        device = self.device
        lines = demand.global_lines + demand.shuffles + demand.local_reads + demand.local_writes
        return MappingProxyType(
            {
                Limit.FLOATS: demand.fma * WARP / device.floats,
                Limit.INTEGERS: demand.alu * WARP / device.integers,
                Limit.SPECIALS: demand.special * WARP / device.specials,
                Limit.DOUBLES: demand.double * WARP / device.doubles,
                Limit.TENSORS: demand.tensor / device.tensor,
                Limit.ISSUE: demand.issued / _SCHEDULERS,
                Limit.SHARED: max(demand.shared_wavefronts, demand.shared_reads + demand.shared_writes),
                Limit.LINES: lines,
                Limit.CACHE: SECTOR * self._sectors(demand) / _CACHE_PORT,
            }
        )

    def _busy(self, demand: Demand) -> float:
        """Clocks of one block on its own pipes: shared memory and lines are one."""
        pipes = dict(self.pipes(demand))
        memory = pipes.pop(Limit.SHARED) + pipes.pop(Limit.LINES)
        own = self.constants
        exponent = own.ahead if self.count.ahead else own.matrix if demand.tensor else own.overlap
        return _norm((max(pipes.values()), memory), exponent)

    def _path(self, demand: Demand) -> float:
        """Clocks of one warp of a block, from its beginning to its end."""
        own = self.constants
        warps = -(-(self.count.threads - self.count.fillers) // WARP)
        latency = self._latency
        path = demand.issued / warps * own.issue + demand.chain * own.operation + demand.barriers * own.barrier
        path += demand.control / warps * own.branch
        path += demand.shared_waits * own.shared + demand.global_waits * latency
        return max(path, demand.copy_waits * latency)

    @property
    def _latency(self) -> float:
        """Clocks until what is read arrives."""
        return self.constants.memory if self.cold else self.constants.cache

    def _round(self, demand: Demand, blocks: float) -> float:
        """Clocks of so many blocks at a time on a multiprocessor."""
        return _norm((blocks * self._busy(demand), self._path(demand)), self.constants.rounds)

    # --- all blocks

    def _computing(self) -> float:
        """Clocks of the multiprocessor that is done last."""
        count, slots = self.count, self.device.multiprocessors * self.resident
        whole, left = divmod(count.blocks, slots)
        at_a_time = -(-left // self.device.multiprocessors)
        longest = mean = last = 0.0
        for kind in count.kinds:
            share = kind.count / count.blocks
            full, rest = self._round(kind.demand, self.resident), self._round(kind.demand, at_a_time) if left else 0.0
            mean += share * full
            last += share * rest
            longest = max(longest, rest if left else full)
        return whole * mean + max(last, longest) if left else max(0, whole - 1) * mean + max(mean, longest)

    def _sectors(self, demand: Demand) -> float:
        """Sectors between the multiprocessors and the second-level cache."""
        held = self.device.near_cache - self.resident * self.count.shared
        far = demand.far / max(1, self.count.blocks) if demand is self.count.demand else demand.far
        reads = demand.far if self.resident * far * SECTOR <= held else demand.near
        return reads + demand.copied + demand.written + LINE // SECTOR * demand.local_writes

    def _memory_bytes(self, total: Demand) -> float:
        """Bytes that memory moves: what is read or written at all, as far as no cache holds it from before."""
        count = self.count
        moved = SECTOR * (total.near - total.gathered + total.copied)
        read = min(float(count.read - count.passed), moved) + min(float(count.chosen), SECTOR * total.gathered)
        if count.passed + count.read > self.device.cache:
            read += min(float(count.passed), moved)
        written = float(count.written)
        if not self.cold:
            held = read + written <= self.device.cache
            return 0.0 if held else read + written
        return read + written

    def _floor(self, total: Demand) -> float:
        """Of the multiply-adds on all lanes, and of each byte once at the full bandwidth."""
        device, count = self.device, self.count
        arithmetic = total.multiply_adds * WARP / (device.multiprocessors * device.floats * device.clock)
        tensor = total.tensor / (device.multiprocessors * device.tensor * device.clock)
        read = min(float(count.read - count.passed), SECTOR * (total.near + total.copied))
        moved = max(0.0, read + count.written - device.cache)
        return max(arithmetic, tensor, moved / device.bandwidth)

    def _in_flight(self, total: Demand) -> float:
        """Bytes under way to one multiprocessor: of all reads of a block, divided by how often it waits for some."""
        waits = max(1.0, sum(kind.count * kind.demand.global_waits for kind in self.count.kinds) / self.count.blocks)
        reads = (total.near + total.copied) / self.count.blocks
        copies = sum(kind.count * kind.demand.copy_waits for kind in self.count.kinds) / self.count.blocks
        return self.resident * SECTOR * reads / max(waits, copies)

    # --- what limits

    def _shares(self, total: Demand, seconds: float, cache: float, memory: float) -> Shares:
        """Parts of the time in which each of them is busy; latency is what no pipe accounts for."""
        clocks = self.device.multiprocessors * self.device.clock
        found = {limit: own / clocks / seconds for limit, own in self.pipes(total).items()}
        found[Limit.CACHE] = max(found[Limit.CACHE], cache / seconds)
        found[Limit.MEMORY] = memory / seconds
        return _with_latency(found)

    def _kind(self, kind: BlockKind) -> KindPrediction:
        clocks = self._round(kind.demand, 1)
        shares = _with_latency({limit: own / clocks for limit, own in self.pipes(kind.demand).items()})
        return KindPrediction(kind.count, clocks / self.device.clock, shares[0][0], shares, kind.demand)


def _with_latency(shares: Mapping[Limit, float]) -> Shares:
    """The greatest first; shared memory and lines are one pipe, which arithmetic waits for."""
    arithmetic = max(shares.get(limit, 0.0) for limit in _ARITHMETIC)
    pipe = shares.get(Limit.SHARED, 0.0) + shares.get(Limit.LINES, 0.0)
    others = max(shares.get(limit, 0.0) for limit in (Limit.CACHE, Limit.MEMORY))
    found = {**shares, Limit.LATENCY: max(0.0, 1 - max(arithmetic + pipe, others))}
    named = ((limit, share) for limit, share in found.items() if share >= _NAMED)
    return tuple(sorted(named, key=lambda own: -own[1]))


def _norm(times: Sequence[float], exponent: float) -> float:
    """Between the greatest of some times and their sum."""
    most = max(times)
    if most <= 0:
        return 0.0
    return float(most * sum((time / most) ** exponent for time in times) ** (1 / exponent))
