"""What leaves a block runs a chunk of steps ahead of it, with the results of the oracle, and never too far."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.contractions import Contraction
from tc.polyhedral.ir.scop import build_scop
from tc.polyhedral.ir.tree import ScheduleTree, tree_text
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.schedule.contract import contracted
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.polyhedral.schedule.steps_in_chunks import chunk_contractions, steps_in_chunks
from tc.reference.compare import compare
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import one_in

# Steps of a chunk, and their temporaries.
MOST: Final = 4
STEP_BYTES: Final = 3 * 5 * 4
SIGNATURE: Final = "float(T,B,K) x, float(K,I) w, float(I,I) U"


def network(first: str, read: str, behind: str = "", results: str = "h") -> str:
    """A recurrent network with something that waits for no step."""
    return f"""
def f({SIGNATURE}) -> ({results}) {{
    h(0,b,i) = 0.0 where b in 0:B, i in 0:I
    for t in 0:T {{
        {first}
        q(b,i) +=! h(t,b,j) * U(j,i)
        h(t+1,b,i) = tanh(q(b,i) + {read})
    }}
    {behind}
}}"""


PRODUCT: Final = "p(t,b,i) +=! x(t,b,k) * w(k,i)"
NESTED: Final = f"""
def f({SIGNATURE}) -> (h) {{
    h(b,i) = U(0,i) where b in 0:B
    for s in 0:2 {{
        g(b) +=! h(b,i)
        for t in 0:T {{
            p(t,b,i) +=! x(t,b,k) * w(k,i) * g(b)
            h(b,i) = tanh(p(t,b,i) - h(b,i))
        }}
    }}
}}"""
CHUNKED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "product": (network(PRODUCT, "p(t,b,i)"), ("p",)),
    "steps innermost": (network("p(b,i,t) +=! x(t,b,k) * w(k,i)", "p(b,i,t)"), ("p",)),
    "in place": (network(f"{PRODUCT}\n p(t,b,i) = 2 * p(t,b,i) + U(i,i)", "p(t,b,i)"), ("p",)),
    "by elements": (network("p(t,b,i) = sin(x(t,b,0) * w(0,i))", "p(t,b,i)"), ("p",)),
    "two of them": (network(f"{PRODUCT}\n r(t,b,i) = x(t,b,1) - w(2,i)", "p(t,b,i) * r(t,b,i)"), ("p", "r")),
    "one from the other": (network(f"{PRODUCT}\n r(t,b,i) = p(t,b,i) - w(2,i)", "r(t,b,i)"), ("p", "r")),
    "in nested blocks": (NESTED, ("p",)),
}
WHOLE: Final = {
    "a result": network(PRODUCT, "p(t,b,i)", results="h, p"),
    "read behind the block": network(PRODUCT, "p(t,b,i)", "y(b,i) = p(2,b,i)", "h, y"),
    "read in the step behind it": network(PRODUCT, "(t > 0 ? p(t-1,b,i) : 0.0)"),
    "nothing of the kind": network("", "x(t,b,0)"),
}


def arrays(steps: int) -> list[np.ndarray]:
    rng = np.random.default_rng(steps)
    return [(rng.standard_normal(shape) / 3).astype(np.float32) for shape in ((steps, 3, 4), (4, 5), (5, 5))]


def program(text: str, steps: int) -> Specialization:
    return specialized(text, tuple(array.shape for array in arrays(steps)))


def in_chunks(text: str, steps: int, options: CpuOptions | None = None) -> dict[str, str]:
    """What is kept of the temporaries that are in chunks; everything is proven behind every pass."""
    mapped = map_program(program(text, steps), options or CpuOptions(), MACHINE, verify_every_pass=True)
    texts = {stage.name: stage.text for stage in mapped.stages}
    kept = dict(line.split(": ") for line in texts.get("contractions", "").splitlines())
    return {tensor: about for tensor, about in kept.items() if tensor in ("p", "r")}


@pytest.fixture(params=[1], autouse=True)
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For some steps of as many temporaries as the parameter says."""
    monkeypatch.setattr("tc.polyhedral.schedule.steps_in_chunks._ROOM", request.param * MOST * STEP_BYTES)


CASES: Final = [pytest.param(len(CHUNKED[name][1]), name, id=name) for name in CHUNKED]


@pytest.mark.parametrize("steps", [5, 12, 13])
@pytest.mark.parametrize(("room", "name"), CASES, indirect=["room"])
def test_temporaries_hold_the_steps_of_one_chunk(name: str, steps: int) -> None:
    text, tensors = CHUNKED[name]
    about = f"{MOST} of {steps} steps are kept, in dimension {2 if name == 'steps innermost' else 0}"
    assert in_chunks(text, steps) == dict.fromkeys(tensors, about)


@one_in(5)
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 11, 12])
@pytest.mark.parametrize(("room", "name"), CASES, indirect=["room"])
def test_results_are_those_of_the_oracle(name: str, steps: int) -> None:
    f = tc.define(CHUNKED[name][0]).single()
    found = f(*arrays(steps), options=CpuOptions(threads=2))
    assert compare(f.oracle(*arrays(steps))["h"], np.asarray(found)).ok


@pytest.mark.parametrize("name", WHOLE)
def test_what_other_steps_or_the_caller_read_is_kept(name: str) -> None:
    assert in_chunks(WHOLE[name], 12) == {}


def test_what_stands_outside_of_all_blocks_has_no_steps() -> None:
    """It may have fewer iterators than blocks around what follows."""
    text = "def f(float(N) A) -> (D) { D(i) = A(i)  for n in 0:1 { for k in 0:N { D(k) = D(0) } } }"
    ones = np.ones(2, np.float32)
    f = tc.define(text).single()
    assert compare(f.oracle(ones)["D"], np.asarray(f(ones))).ok


def test_few_steps_stay_in_the_caches_anyway() -> None:
    assert in_chunks(CHUNKED["product"][0], MOST) == {}


def test_chunks_of_fewer_steps_are_not_worth_it() -> None:
    assert in_chunks(CHUNKED["two of them"][0], 12) == {}


def test_a_chunk_has_a_divisor_of_all_steps_where_it_is_not_much_shorter() -> None:
    text = CHUNKED["product"][0]
    assert [in_chunks(text, steps)["p"].split()[0] for steps in (9, 10, 11)] == ["3", "4", "4"]


@pytest.mark.parametrize(
    "options",
    [CpuOptions(schedule=ScheduleOptions(tile=(2,))), CpuOptions(schedule=ScheduleOptions(fusion=Fusion.MINIMAL))],
    ids=["tile", "fusion"],
)
def test_explicit_tiles_and_minimal_fusion_keep_the_loops_of_the_program(options: CpuOptions) -> None:
    assert in_chunks(CHUNKED["product"][0], 12, options) == {}


def chunked(own: Contraction, size: int) -> ScheduleTree | None:
    """Chunks of ``own.size`` steps where the temporary holds ``size``."""
    whole = program(CHUNKED["product"][0], 12)
    with isl_context() as context:
        tree = schedule_scop(build_scop(whole, context), Fusion.PRESERVE_PARALLEL)
        assert chunk_contractions(tree, build_scop(whole, context)) == (Contraction("p", 0, MOST, 12),)
        scop = build_scop(contracted(whole, replace(own, size=size)), context)
        found = steps_in_chunks(tree, scop, [own])
        assert found is None or "floor((t)/4)" in tree_text(found)
        return found


def test_no_chunk_is_longer_than_what_is_kept() -> None:
    own = Contraction("p", 0, MOST, 12)
    assert chunked(own, MOST) is not None
    assert chunked(own, MOST + 1) is not None
    assert chunked(own, MOST - 1) is None
