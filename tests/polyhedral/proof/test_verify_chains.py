"""No float32 sum has a long chain of additions: counted by the proof, which refuses loops that are cut wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tc.base.errors import VerificationError
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.ir.loops import (
    Block,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
)
from tc.polyhedral.ir.totals import Fold, Total
from tc.polyhedral.proof.verify_blocks import prove_blocks
from tc.polyhedral.proof.verify_chains import prove_chains
from tests.polyhedral.generate.sums import SUMS, changed, program_of

Change = Callable[[Loop], Loop]


@pytest.mark.parametrize("name", SUMS)
def test_cut_sums_have_short_chains(name: str) -> None:
    program = program_of(name)
    prove_chains(program, block_sums(program).root)


@pytest.mark.parametrize("name", SUMS)
def test_sums_that_are_not_cut_are_refused(name: str) -> None:
    program = program_of(name)
    with pytest.raises(VerificationError, match=r"S0 adds up to an element more than 64 times, one after the other"):
        prove_chains(program, program.root)


def never_folded(loop: Loop) -> Loop:
    return replace(loop, folds=())


def folded_seldom(loop: Loop) -> Loop:
    return replace(loop, folds=tuple(replace(fold, every=5 * fold.every) for fold in loop.folds))


@pytest.mark.parametrize("change", [never_folded, folded_seldom])
@pytest.mark.parametrize("name", SUMS)
def test_long_partial_sums_are_refused(name: str, change: Change) -> None:
    """The proof of the blocks alone has nothing against the latter: the terms are the same."""
    program = program_of(name)
    wrong = changed(block_sums(program).root, change)
    if change is folded_seldom:
        prove_blocks(program, wrong)
    with pytest.raises(VerificationError, match=r"a partial sum of S0 has up to \d+ terms, more than 64"):
        prove_chains(program, wrong)


S = Instance("S0", (IndexVariable("i"),))


def summing() -> LoopProgram:
    """A program that adds everything up to one element, as far as its loops tell."""
    program = program_of("in a variable")
    body = next(own for own in program.bodies if own.reduction is not None)
    return replace(program, bodies=(replace(body, terms=None),))


def looped(name: str, last: int, body: LoopTree, every: int = 0) -> Loop:
    folds = (Fold("S0", every),) if every else ()
    return Loop(name, IndexLiteral(0), IndexLiteral(last), 1, LoopKind.SEQUENTIAL, body, folds=folds)


def guarded(then: LoopTree, otherwise: LoopTree | None = None) -> Guard:
    ends = IndexVariable("i"), IndexLiteral(3)
    return Guard(IndexOperation(IndexOperator.LESS, ends), then, otherwise)


def around_folds(every: int) -> Block:
    """32 terms, folds in a loop from e to 1, and 34 terms up to the next fold."""
    folding = replace(looped("l", 1, looped("q", 0, S, 1), every), lower=IndexVariable("e"))
    return Block((looped("k", 31, S), folding, looped("m", 32, S, 0), looped("n", 0, S, 1)))


@pytest.mark.parametrize(
    ("body", "longest"),
    [
        (looped("j", 9, looped("k", 63, S), 1), 64),
        (looped("j", 9, looped("k", 64, S), 1), 65),
        (looped("j", 9, looped("k", 12, S), 5), 65),
        (looped("j", 9, looped("k", 15, S), 4), 64),
        # What is left of one run goes on in the next: nine times seven, before a fold in the tenth.
        (Block((looped("j", 9, looped("k", 6, S), 20), looped("l", 3, S))), 74),
        (Block((looped("j", 9, looped("k", 31, S), 1), looped("l", 31, S), looped("m", 9, looped("n", 32, S), 1))), 65),
        (looped("j", 9, Block((looped("k", 31, S), looped("l", 0, S, 1), looped("m", 31, S))), 0), 65),
        (looped("j", 9, guarded(looped("k", 63, S), looped("k", 64, S)), 1), 65),
        (looped("j", 9, Block((guarded(looped("k", 31, S)), looped("k", 32, S))), 1), 65),
        # Where the loop between does not run, nothing is folded.
        (looped("j", 9, looped("e", 2, around_folds(0)), 1), 66),
        (looped("j", 9, looped("e", 1, around_folds(0)), 1), 64),
        (looped("j", 9, looped("e", 2, around_folds(1)), 1), 66),
    ],
)
def test_chains_go_from_fold_to_fold(body: LoopTree, longest: int) -> None:
    found, root = summing(), replace(looped("t", 0, body), totals=(Total("S0", wide=True),))
    if longest <= 64:
        prove_chains(found, root)
        return
    with pytest.raises(VerificationError, match=f"a partial sum of S0 has up to {longest} terms"):
        prove_chains(found, root)


@pytest.mark.parametrize("count", [64, 65])
def test_long_totals_in_float32_are_refused(count: int) -> None:
    found, body = summing(), looped("j", count - 1, looped("k", 3, S), 1)
    prove_chains(found, replace(body, totals=(Total("S0", wide=True),)))
    root = replace(body, totals=(Total("S0", wide=False),))
    if count <= 64:
        prove_chains(found, root)
        return
    with pytest.raises(VerificationError, match="a total of S0 in float32 has up to 65 partial sums"):
        prove_chains(found, root)


@pytest.mark.parametrize("count", [64, 65])
def test_totals_that_go_back_to_memory_too_often_are_refused(count: int) -> None:
    found, inside = summing(), replace(looped("k", 9, S), totals=(Total("S0", wide=True),))
    root = looped("j", count - 1, inside)
    if count <= 64:
        prove_chains(found, root)
        return
    with pytest.raises(VerificationError, match="S0 adds up to an element more than 64 times"):
        prove_chains(found, root)


def test_sums_of_few_terms_need_no_proof() -> None:
    program = program_of("in a variable")
    few = replace(program, bodies=tuple(replace(body, terms=64) for body in program.bodies))
    prove_chains(few, program.root)
