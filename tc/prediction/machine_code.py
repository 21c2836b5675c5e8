"""Loops in the machine code of NVIDIA's GPUs, from the binary alone: what they have, and how long they take at least.

An instruction has 128 bits, from Volta on: the operation in the lowest 12, which differ in their upper three by where
operands come from, and at 105 the clocks that the compiler has a warp wait behind it at least, in four bits
(https://github.com/cloudcores/CuAssembler; Huerta et al., *Analyzing Modern NVIDIA GPU cores*, arXiv 2503.20481).
Their sum along a loop is a lower bound of its time that needs no calibration.  What waits for memory comes on top.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tc.base.frozen import frozen

_SIZE: Final = 16
# The operation without where its operands come from.
_OPERATION: Final = 0x1FF
# FFMA, DFMA, IDP.  HFMA2 makes constants, too.
_MULTIPLY_ADDS: Final = frozenset({0x023, 0x02B, 0x026})
_MATRIX: Final = frozenset({0x03C, 0x037, 0x03F, 0x1F0})  # HMMA, IMMA, DMMA, HGMMA
_SHARED_READS: Final = frozenset({0x184, 0x03B})  # LDS, LDSM
_SHARED_WRITES: Final = frozenset({0x188})  # STS
_GLOBAL_READS: Final = frozenset({0x181})  # LDG
_GLOBAL_WRITES: Final = frozenset({0x186})  # STG
_COPIES: Final = frozenset({0x1AE})  # LDGSTS
_LOCAL: Final = frozenset({0x183, 0x187})  # LDL, STL
_BARRIERS: Final = frozenset({0x11D})  # BAR
_BRANCH: Final = 0x147
_EXIT: Final = 0x14D
_STALL: Final = 105
# The predicate that always holds.
_ALWAYS: Final = 7
# From this architecture on, the lowest bits of a distance stand apart.
_HOPPER: Final = 90


@frozen
class Instruction:
    """``operation``: without the form of its operands.  ``stall``: clocks until the next one.  ``target``: the number
    of the instruction that a branch goes to.  ``always``: it has no condition.
    """

    operation: int
    stall: int
    target: int | None
    always: bool


@frozen
class MachineLoop:
    """A loop: the numbers of its first and last instruction, and how many of which kind it has.

    ``clocks``: of one iteration of a warp, at least, on the shortest way through it that meets multiply-adds.
    """

    first: int
    last: int
    instructions: int
    clocks: int
    multiply_adds: int
    matrix: int
    shared_reads: int
    shared_writes: int
    global_reads: int
    global_writes: int
    copies: int
    local: int
    barriers: int

    def __str__(self) -> str:
        share = f"{self.multiply_adds / self.instructions:.0%} multiply-adds"
        products = f"{self.matrix} matrix instructions" if self.matrix else share
        spilled = f", {self.local} accesses to local memory" if self.local else ""
        return (
            f"{self.instructions} instructions, {products}, {self.shared_reads} shared reads{spilled}, at least "
            f"{self.clocks} clocks of a warp"
        )


def hot_loop(code: bytes, kernel: str, architecture: str) -> MachineLoop | None:
    """Of the loops of a kernel that have no other inside, the one with most multiply-adds, or else most instructions.

    A loop has two versions where tensors may begin at any element: the one for those that begin at multiples of 16
    bytes copies more at a time, so it has fewer instructions.  None without loops.  ValueError for what is no binary
    with that kernel.
    """
    return hottest(loops(instructions(section(code, f".text.{kernel}"), architecture)))


def hottest(found: Sequence[MachineLoop]) -> MachineLoop | None:
    """The loop that ``hot_loop`` chooses among those of a kernel."""
    innermost = _innermost(found)
    matrices = any(own.matrix for own in innermost)
    work = [own.matrix if matrices else own.multiply_adds for own in innermost]
    if not any(work):
        return max(innermost, key=lambda own: own.instructions, default=None)
    # Versions of a loop have the same work, or nearly so: compilers combine multiplications and additions as they like.
    versions = [(own.instructions / n, own) for own, n in zip(innermost, work, strict=True) if 8 * n >= 7 * max(work)]
    return min(versions, key=lambda version: version[0])[1]


def _innermost(found: Sequence[MachineLoop]) -> list[MachineLoop]:
    return [own for own in found if not any(own is not other and _holds(own, other) for other in found)]


def _holds(outer: MachineLoop, inner: MachineLoop) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def section(code: bytes, name: str) -> bytes:
    """The content of a section of a binary in ELF; ValueError where there is none of that name."""
    if code[:5] != b"\x7fELF\x02":
        raise ValueError("it is no ELF file of 64 bits")
    (begin,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, begin + number * size) for number in range(count)]
    texts = headers[names][4]
    for place, _, _, _, offset, length in headers:
        end = code.index(b"\0", texts + place)
        if code[texts + place : end].decode() == name:
            return code[offset : offset + length]
    raise ValueError(f"it has no section {name}")


def instructions(text: bytes, architecture: str) -> tuple[Instruction, ...]:
    """The instructions of a section, for an architecture such as ``sm_90``."""
    digits = "".join(one for one in architecture if one.isdigit())
    apart = int(digits) >= _HOPPER
    words = (int.from_bytes(text[place : place + _SIZE], "little") for place in range(0, len(text), _SIZE))
    return tuple(_decoded(number, word, apart=apart) for number, word in enumerate(words))


def _decoded(number: int, word: int, *, apart: bool) -> Instruction:
    operation = word & _OPERATION
    target = number + 1 + _distance(word, apart=apart) // (_SIZE // 4) if operation == _BRANCH else None
    return Instruction(operation, word >> _STALL & 15, target, word >> 12 & 15 == _ALWAYS)


def _distance(word: int, *, apart: bool) -> int:
    """Of a branch, from the next instruction on, in units of four bytes."""
    upper = word >> 34 & (1 << 46) - 1
    upper -= upper >> 45 << 46
    return upper << 8 | word >> 16 & 255 if apart else upper


def loops(code: Sequence[Instruction]) -> tuple[MachineLoop, ...]:
    """All that branches backwards, in the order of the text; a branch to itself, at the end of a kernel, is none."""
    found: dict[int, int] = {}
    for number, own in enumerate(code):
        if own.target is not None and 0 <= own.target < number:
            found[own.target] = max(number, found.get(own.target, 0))
    return tuple(_loop(code, first, last) for first, last in sorted(found.items()))


_KINDS: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        "multiply_adds": _MULTIPLY_ADDS,
        "matrix": _MATRIX,
        "shared_reads": _SHARED_READS,
        "shared_writes": _SHARED_WRITES,
        "global_reads": _GLOBAL_READS,
        "global_writes": _GLOBAL_WRITES,
        "copies": _COPIES,
        "local": _LOCAL,
        "barriers": _BARRIERS,
    }
)


def _loop(code: Sequence[Instruction], first: int, last: int) -> MachineLoop:
    own = code[first : last + 1]
    counts = {name: sum(one.operation in kinds for one in own) for name, kinds in _KINDS.items()}
    return MachineLoop(first, last, len(own), _clocks(code, first, last), **counts)


def _clocks(code: Sequence[Instruction], first: int, last: int) -> int:
    """Of the shortest way through a loop that meets the one in the middle of its multiply-adds, if it has some."""
    working = _MULTIPLY_ADDS | _MATRIX
    met = [number for number in range(first, last + 1) if code[number].operation in working]
    middle = met[len(met) // 2] if met else last
    return _shortest(code, first, middle) + _shortest(code, middle, last) + max(1, code[last].stall)


def _shortest(code: Sequence[Instruction], first: int, last: int) -> int:
    """Clocks from before one instruction to before a later one, on the way that takes the fewest."""
    clocks: dict[int, int] = {first: 0}
    for number in range(first, last + 1):
        if number not in clocks:
            continue
        own = code[number]
        spent = clocks[number] + max(1, own.stall)
        for following in _following(number, own):
            if number < following <= last:
                clocks[following] = min(spent, clocks.get(following, spent))
    return clocks.get(last, 0)


def _following(number: int, own: Instruction) -> Iterator[int]:
    if own.target is not None:
        yield own.target
    if not (own.always and (own.target is not None or own.operation == _EXIT)):
        yield number + 1
