"""Loops over ranges that read tensors: what is wrong with their bounds is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tc.base.errors import VerificationError
from tc.language.program.program import InRange
from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.generate.narrow_ranges import narrow_ranges
from tc.polyhedral.ir.loops import IndexLiteral, IndexVariable, Loop, LoopProgram, LoopTree, ReadRange
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify_ranges import prove_ranges
from tc.targets.options import CpuOptions, GpuOptions, Options
from tests.polyhedral.generate.sums import changed
from tests.polyhedral.support import machine_for, specialized

TEXT = "def f(int32(P) R, int32(Z) c, float(M,K) x) -> (y) { y(i,k) +=! x(c(j),k) where j in R(i):R(i+1) }"


def narrowed(options: Options) -> LoopProgram:
    program = map_program(specialized(TEXT, ((14,), (300,), (17, 40))), options, machine_for(options)).loops
    root = block_sums(program).root
    return replace(
        program, root=narrow_ranges(root, {body.name: body for body in program.bodies}, size_ranges(program.sizes))
    )


@pytest.mark.parametrize("options", [CpuOptions(), CpuOptions(vectorize=False), GpuOptions()], ids=str)
def test_loops_have_ranges_that_are_proven(options: Options) -> None:
    program = narrowed(options)
    found: list[ReadRange] = []

    def collect(loop: Loop) -> LoopTree:
        found.extend(loop.ranges)
        return loop

    changed(program.root, collect)
    assert found
    prove_ranges(program)


def test_bounds_are_not_read_where_a_loop_inside_may_have_no_iteration() -> None:
    options = CpuOptions(vectorize=False)
    program = map_program(specialized(TEXT, ((14,), (300,), (17, 40))), options, machine_for(options)).loops

    def emptied(loop: Loop) -> LoopTree:
        return replace(loop, upper=literal(-1)) if loop.iterator == "c3" else loop

    def found(root: LoopTree) -> int:
        ranges: list[ReadRange] = []

        def collect(loop: Loop) -> LoopTree:
            ranges.extend(loop.ranges)
            return loop

        changed(narrow_ranges(root, bodies, {}), collect)
        return len(ranges)

    root, bodies = block_sums(program).root, {body.name: body for body in program.bodies}
    assert found(root)
    assert not found(changed(root, emptied))


def literal(value: int) -> IndexLiteral:
    return IndexLiteral(value)


def swapped(own: ReadRange) -> ReadRange:
    inside = own.inside
    return replace(own, inside=InRange(inside.index, inside.end, inside.begin, inside.extent))


MISTAKES: dict[str, Callable[[ReadRange], ReadRange]] = {
    "the first iteration comes one too late": lambda own: replace(own, high=literal(-1)),
    "the last iteration comes one too early": lambda own: replace(own, low=literal(1)),
    "another factor": lambda own: replace(own, factor=2),
    "no factor": lambda own: replace(own, factor=0),
    "the range of another row": lambda own: replace(own, arguments=(literal(3), *own.arguments[1:])),
    "bounds in the wrong order": swapped,
    "a bound that changes while the loop runs": lambda own: replace(own, low=IndexVariable("c3")),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_ranges_are_refused(mistake: str) -> None:
    program = narrowed(CpuOptions())

    def wrong(loop: Loop) -> LoopTree:
        return replace(loop, ranges=tuple(map(MISTAKES[mistake], loop.ranges)))

    with pytest.raises(VerificationError, match="is left out where it may do something"):
        prove_ranges(replace(program, root=changed(program.root, wrong)))


def test_instances_that_do_not_ask_are_refused_where_loops_run_more() -> None:
    program = narrowed(CpuOptions())

    def whole(loop: Loop) -> LoopTree:
        return replace(loop, ranges=())

    with pytest.raises(VerificationError, match="S0 does not ask whether it is inside of its range"):
        prove_ranges(replace(program, root=changed(program.root, whole)))
