"""A mistake in a kernel is noticed twice: by the proof, and by the emulator."""

from __future__ import annotations

import pytest

from tests.mutants.judge import Verdict
from tests.mutants.programs import OPTIONS, case_named, judged, mistake_names
from tests.turns import SLOW, every

# A product, rows that are reduced and used again, a result that comes in, steps with barriers between them;
# ``python -m tests.mutants`` has the whole
# corpus and all options.
SOME = (
    ("mm", "copied two tiles ahead"),
    ("softmax", "partial results in lanes"),
    ("sum_of_rows", "partial results"),
    ("sum_of_vector", "blocks and lanes share sums"),
    ("jacobi", "default"),
    ("softmax", "rows in shared memory"),
    pytest.param("recurrent_network", "default", marks=SLOW),
    pytest.param("floyd_warshall", "default", marks=SLOW),
    pytest.param("mv_accumulate", "default", marks=SLOW),
    pytest.param("sum_of_rows", "tiles", marks=SLOW),
    pytest.param("sum_of_rows", "blocks share sums", marks=SLOW),
    pytest.param("mm", "operands in registers", marks=SLOW),
    pytest.param("mm", "partial results in lanes", marks=SLOW),
    pytest.param("mm_accumulate", "tiles", marks=SLOW),
    pytest.param("softmax", "copied ahead", marks=SLOW),
)


@pytest.mark.parametrize("step", every(2, [5, 1]), ids=["every fifth", "all"])
@pytest.mark.parametrize(("name", "options"), SOME)
def test_proof_and_emulator_notice_every_mistake(name: str, options: str, step: int) -> None:
    """By default a fifth of them; ``pytest -m slow`` has all."""
    found = list(judged(case_named(name), OPTIONS[options], step=step))
    assert found
    missed = [mistake.name for mistake in found if mistake.verdict != Verdict(refused=True, wrong=True)]
    assert not missed


@SLOW
def test_there_are_mistakes_of_every_kind() -> None:
    missing = {
        "without barrier",
        "shifted",
        "one short",
        "a slot less",
        "copies awaited after",
        "a group more pending at",
        "begun and never awaited",
        "only the first partial result of 4 threads",
        "only the first partial result of lanes",
        "only the first partial result of 4 blocks",
        "a lane too few",
    }
    for case, options in (
        ("mm", "copied two tiles ahead"),
        ("sum_of_rows", "partial results"),
        ("mm", "partial results in lanes"),
        ("mm", "tiles"),
        ("sum_of_rows", "blocks share sums"),
    ):
        names = mistake_names(case_named(case), OPTIONS[options])
        missing -= {kind for kind in missing if any(kind in name for name in names)}
    assert not missing
