"""Mistakes in kernels with matrix instructions are noticed twice: by the proof, and by the emulator."""

from __future__ import annotations

import pytest

from tests.mutants.judge import Verdict
from tests.mutants.matrix_kernels import KERNELS, Mutant, mutants
from tests.turns import SLOW, every

_LEAST = 2000


@pytest.mark.parametrize("step", every(2, [37, 1]), ids=["every 37th", "all"])
@pytest.mark.parametrize("kernel", every(2, KERNELS))
def test_proof_and_emulator_notice_every_mistake(kernel: str, step: int) -> None:
    """By default a few of half of the kernels; ``pytest -m slow`` has all."""
    found = mutants(kernel)[step // 2 :: step]
    assert found
    verdicts = {mutant: mutant.judged() for mutant in found}
    missed = [f"{mutant.name}: {verdict}" for mutant, verdict in verdicts.items() if not _is_right(mutant, verdict)]
    assert not missed
    assert max(verdict.seconds for verdict in verdicts.values()) < 1


def _is_right(mutant: Mutant, verdict: Verdict) -> bool:
    """What means the same is right; the proof may refuse it nevertheless."""
    return not verdict.wrong if mutant.equivalent else verdict == Verdict(refused=True, wrong=True)


@SLOW
def test_there_are_mistakes_of_every_kind() -> None:
    found = [mutant for kernel in KERNELS for mutant in mutants(kernel)]
    changed = [mutant.name for mutant in found if mutant.equivalent is None]
    assert len(set(changed)) == len(changed) >= _LEAST
    for kind in (
        "registers reversed of the left factor",
        "subscript 1 moved by 8 of the right factor",
        "elements in columns",
        "rows taken for columns",
        "the other sign",
        "fewer steps",
        "no limit",
        "rows turned",
        "without barrier",
        "a group more pending",
        "copies awaited after",
        "a slot less",
        "shifted",
        "one short",
    ):
        assert any(kind in name for name in changed), kind
