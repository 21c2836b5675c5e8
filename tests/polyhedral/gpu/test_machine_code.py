"""Machine code of NVIDIA's GPUs: control bits, branches and loops, by hand and as NVRTC makes them."""

from __future__ import annotations

import pytest

import tc
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.prediction.machine_code import Instruction, hot_loop, hottest, instructions, loops, section
from tc.prediction.prediction import Limit
from tests.translated import translated
from tests.turns import one_in

FFMA, LDS, BRANCH, EXIT, OTHER = 0x223, 0x984, 0x947, 0x94D, 0x210
ALWAYS = 7
PRODUCT = tc.define("def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }").single()
TILED = tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(64, 64, 16)), block=(16, 16), stages=2)
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def word(operation: int, stall: int, distance: int | None = None, predicate: int = ALWAYS) -> bytes:
    """An instruction of Hopper; ``distance``: of a branch, in instructions from the next one on."""
    found = operation | predicate << 12 | stall << 105
    if distance is not None:
        units = 4 * distance & (1 << 54) - 1
        found |= (units & 255) << 16 | units >> 8 << 34
    return found.to_bytes(16, "little")


LOOP = (
    word(OTHER, 2),
    word(LDS, 1),  # 1: the loop begins
    word(BRANCH, 5, distance=2, predicate=0),  # over the next two
    word(OTHER, 15),
    word(OTHER, 15),
    word(FFMA, 4),
    word(BRANCH, 6, distance=-6, predicate=1),
    word(EXIT, 5),
    word(BRANCH, 0, distance=-1),  # to itself, as compilers end a kernel
)


def test_instructions_have_stalls_and_targets() -> None:
    first, _, ahead, *_, back, leave, end = instructions(b"".join(LOOP), "sm_90")
    assert first == Instruction(operation=0x010, stall=2, target=None, always=True)
    assert (ahead.target, ahead.always, back.target, back.stall) == (5, False, 1, 6)
    assert (leave.operation, end.target) == (0x14D, 8)


def test_a_loop_takes_its_shortest_way() -> None:
    (found,) = loops(instructions(b"".join(LOOP), "sm_90"))
    assert (found.first, found.last, found.instructions) == (1, 6, 6)
    assert (found.multiply_adds, found.shared_reads) == (1, 1)
    assert found.clocks == 1 + 5 + 4 + 6
    assert str(found) == "6 instructions, 17% multiply-adds, 1 shared reads, at least 16 clocks of a warp"


def test_of_two_versions_of_a_loop_the_one_with_fewer_instructions_is_hot() -> None:
    """The other one copies element by element."""
    copies = (word(OTHER, 1),) * 6
    slow = (*LOOP[:2], *copies, word(FFMA, 4), word(BRANCH, 6, distance=-len(copies) - 3, predicate=1))
    idle = (word(OTHER, 1), *copies, *copies, word(BRANCH, 6, distance=-2 * len(copies) - 1, predicate=1))
    found = loops(instructions(b"".join((*slow, *LOOP[:7], *idle, *LOOP[7:])), "sm_90"))
    assert [own.instructions for own in found] == [9, 6, 13]
    assert hottest(found) is found[1]
    assert hottest((found[0], found[2])) is found[0]
    assert hottest(()) is None


@pytest.mark.parametrize("code", [b"", b"MZ", b"\x7fELF\x01" + bytes(64)])
def test_what_is_no_binary(code: bytes) -> None:
    with pytest.raises(ValueError, match="it is no ELF file of 64 bits"):
        section(code, ".text")


@one_in(2)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_nvrtc_makes_of_a_product(architecture: str) -> None:
    """Its inner loop, which the counter predicts: 16 points of a thread, and what it reads for them."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = PRODUCT.compile((256, 256), (256, 256), target=f"cuda:{architecture}", options=TILED)
    (loop,) = kernel.hot_loops
    assert loop is not None
    assert loop.multiply_adds % 16 == 0
    assert loop.clocks >= loop.multiply_adds
    loops_of = translated(PRODUCT, (256, 256), (256, 256), target=f"cuda:{architecture}", options=TILED).mapped.loops
    (count,) = count_kernels(loops_of)
    demand = count.kinds[0].demand
    assert loop.shared_reads / loop.multiply_adds == pytest.approx(demand.shared_reads / demand.multiply_adds, rel=0.1)
    assert loop.multiply_adds / loop.instructions == pytest.approx(demand.multiply_adds / demand.issued, rel=0.35)
    code = kernel._executable.binary.code
    with pytest.raises(ValueError, match=r"it has no section \.text\.other"):
        hot_loop(code, "other", architecture)


HALVES = tc.define("def halves(bfloat16(M,K) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }").single()


def test_matrix_instructions_are_counted() -> None:
    """Each multiplies 16 x 16 by 16 x 8 elements; NVRTC's loop has the reads for each that the counter says."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    given = [tc.ArraySpec((512, 512), tc.ScalarType.BFLOAT16)] * 2
    (count,) = count_kernels(translated(HALVES, *given, target="cuda:sm_80").mapped.loops)
    demand = count.demand
    assert demand.tensor == 512**3
    assert demand.matrix == 512**3 / (16 * 8 * 16)
    assert demand.multiply_adds == 0
    kernel = HALVES.compile(*given, target="cuda:sm_80")
    (loop,) = kernel.hot_loops
    assert loop is not None
    # NVRTC puts three more reads where it waits for copies, and none in the loop of what is not aligned.
    reads, expected = loop.shared_reads / loop.matrix, demand.shared_reads / demand.matrix
    assert expected <= reads <= 1.5 * expected
    assert f"{loop.matrix} matrix instructions" in str(loop)
    assert kernel.predicted is not None
    assert Limit.TENSORS in dict(kernel.predicted.kernels[0].shares)


def test_processors_have_no_such_loops() -> None:
    assert PRODUCT.compile((8, 8), (8, 8)).hot_loops == ()
