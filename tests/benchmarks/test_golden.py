"""What the kernels of the suite ask of an H200 by default: a change of the inner loops shows here, without a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.problems.case import Case, Suite
from benchmarks.problems.cases import CASES
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.polyhedral.pipeline import Prepared
from tc.prediction.counts import KernelCount
from tc.targets.machine import GPUS
from tc.targets.options import GpuOptions
from tests.conftest import Golden

COUNTS = "benchmarks/counts.txt"
FILES = (COUNTS,)


def test_what_the_suite_asks_for(golden: Golden) -> None:
    cases = (case for case in CASES if case.suite in (Suite.PAPER, Suite.MODERN))
    golden.check(COUNTS, "".join(f"{line}\n" for case in cases for line in lines(case)))


def lines(case: Case) -> Iterator[str]:
    program = case.problem.comprehension.specialize(*case.problem.shapes(case.sizes).values())
    with Prepared(program).generated(GpuOptions(), GPUS["sm_90"]) as generated:
        counts = count_kernels(generated.loops)
    for number, count in enumerate(counts):
        yield f"{case.name}, kernel {number}: {count.blocks} blocks of {count.threads}, {count.shared} B shared"
        for kind in count.kinds:
            yield f"  {kind.count} blocks: {described(count, number=count.kinds.index(kind))}"


def described(count: KernelCount, *, number: int) -> str:
    demand = count.kinds[number].demand
    parts = [f"{demand.issued / (-(-count.threads // 32)):.0f} instructions of a warp"]
    if demand.multiply_adds:
        reads, clocks = demand.shared_reads / demand.multiply_adds, demand.shared_wavefronts / demand.multiply_adds
        parts.append(f"{demand.multiply_adds / demand.issued:.0%} multiply-adds")
        parts.append(f"{reads:.3f} shared reads and {clocks:.3f} wavefronts for each of these")
    if demand.global_lanes:
        parts.append(f"{demand.width:.1f} B wide")
    parts.append(f"{demand.far + demand.copied:.0f} sectors read, {demand.written:.0f} written")
    parts.append(f"{demand.barriers:.0f} barriers")
    return ", ".join(parts)
