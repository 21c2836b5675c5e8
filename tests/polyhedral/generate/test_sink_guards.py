"""Guards between barriers instead of around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tc
from tc.base.errors import VerificationError
from tc.base.types import ScalarType
from tc.language.lower.specialize import specialize
from tc.language.program.specialization import ArraySpec, Signature, SymbolicSize
from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.generate.sink_guards import sink_guards
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    Leaf,
    Loop,
    LoopProgram,
    LoopTree,
    barriers,
)
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify_sunk_guards import prove_sunk_guards
from tc.targets.machine import GENERIC_GPU
from tests.polyhedral.support import program_of


@pytest.fixture(scope="module")
def turned() -> LoopProgram:
    """Tiles of a matrix that are turned in shared memory."""
    program = program_of("def f(float(M,N) A) -> (B) { B(n,m) = A(m,n) }")
    sizes = (SymbolicSize(70, (("A", 0),)), SymbolicSize(40, (("A", 1),)))
    signature = Signature((("A", ArraySpec((70, 40), ScalarType.FLOAT32)),), symbolic=sizes)
    return map_program(specialize(program, signature), tc.GpuOptions(), GENERIC_GPU).loops


def conditional(tree: LoopTree, *, inside: bool = False) -> bool:
    """Whether a barrier is in a branch, or in a loop over blocks that has fewer than are launched."""
    match tree:
        case Barrier():
            return inside
        case Guard(_, then, otherwise):
            return any(conditional(part, inside=True) for part in (then, otherwise) if part is not None)
        case Block(children):
            return any(conditional(child, inside=inside) for child in children)
        case Loop(kind=kind, upper=upper, body=body):
            return conditional(body, inside=inside or (kind.is_mapped and not isinstance(upper, IndexLiteral)))
        case Allocation(_, body):
            return conditional(body, inside=inside)
        case Leaf():
            return False


def test_no_barrier_is_left_in_a_branch(turned: LoopProgram) -> None:
    assert barriers(turned.root)
    assert conditional(turned.root)
    sunk = sink_guards(turned.root, size_ranges(turned.sizes))
    assert not conditional(sunk)
    prove_sunk_guards(turned, sunk)


def without_guards(tree: LoopTree) -> LoopTree:
    match tree:
        case Guard(_, then, _):
            return without_guards(then)
        case Block(children):
            return Block(tuple(map(without_guards, children)))
        case Loop() | Allocation():
            return replace(tree, body=without_guards(tree.body))
        case Leaf():
            return tree


def without_barriers(tree: LoopTree) -> LoopTree:
    match tree:
        case Block(children):
            return Block(tuple(without_barriers(child) for child in children if not isinstance(child, Barrier)))
        case Loop() | Allocation():
            return replace(tree, body=without_barriers(tree.body))
        case Barrier():
            return Block(())
        case Guard() | Leaf():
            return tree


def test_what_changes_something_is_refused(turned: LoopProgram) -> None:
    sunk = sink_guards(turned.root, size_ranges(turned.sizes))
    with pytest.raises(VerificationError, match=r"moved rightly: other statements run"):
        prove_sunk_guards(turned, without_barriers(sunk))
    with pytest.raises(VerificationError, match=r"moved rightly: those around S0_pack0"):
        prove_sunk_guards(turned, without_guards(sunk))
    # A barrier that runs in fewer places.
    with pytest.raises(VerificationError, match=r"moved rightly: those around barrier0"):
        prove_sunk_guards(replace(turned, root=sunk), turned.root)


def test_barriers_that_some_threads_pass_are_refused(turned: LoopProgram) -> None:
    """They run wherever they did, and elsewhere: on a condition that may be different for the threads of a block."""

    def guarded(tree: LoopTree) -> LoopTree:
        match tree:
            case Barrier():
                always = IndexOperation(IndexOperator.LESS_EQUAL, (IndexLiteral(0), IndexLiteral(1)))
                return Guard(always, tree, None)
            case Block(children):
                return Block(tuple(map(guarded, children)))
            case Loop() | Allocation():
                return replace(tree, body=guarded(tree.body))
            case Guard() | Leaf():
                return tree

    sunk = guarded(sink_guards(turned.root, size_ranges(turned.sizes)))
    with pytest.raises(VerificationError, match=r"moved rightly: those around barrier0"):
        prove_sunk_guards(turned, sunk)
