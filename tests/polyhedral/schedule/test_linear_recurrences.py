"""Linear recurrences in parts: which statements are, what they compute, and what the proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.base.errors import VerificationError
from tc.language.isl.session import isl_context
from tc.language.program.program import Binary, Expression, Literal, Program, Read, Statement, rebuild
from tc.language.program.specialization import Specialization
from tc.polyhedral import attempts
from tc.polyhedral.ir.recurrences import LinearRecurrence
from tc.polyhedral.proof.verify_recurrences import find_wrong_recurrence, prove_recurrences
from tc.polyhedral.schedule.linear_recurrences import part_recurrences
from tc.polyhedral.schedule.scan import Scanning
from tc.reference.compare import compare
from tests.opencl import require
from tests.turns import every, every_row

REASSOCIATE = tc.Numerics(reassociate=True)
# Parts of four steps, as soon as there are two of them.
SMALL = Scanning(1000, 4, 5)
HEAD = "def f(float(T,B) x, float(T,B) a, float(B) h0) -> (h) { h(0,b) = h0(b)  for t in 0:T { "
LINEAR = {
    "a moving average": "h(t+1,b) = a(t,b) * h(t,b) + (1 - a(t,b)) * x(t,b) }",
    "the state on the right": "h(t+1,b) = x(t,b) + h(t,b) * a(t,b) }",
    "no factor": "h(t+1,b) = x(t,b) + h(t,b) }",
    "no term": "h(t+1,b) = a(t,b) * h(t,b) }",
    "differences": "h(t+1,b) = x(t,b) - (a(t,b) * h(t,b) - 1) * 0.5f }",
    "a quotient": "h(t+1,b) = -(h(t,b) + x(t,b)) / (1.5f + a(t,b)) }",
    "used in its block": "h(t+1,b) = a(t,b) * h(t,b) + x(t,b)  y(t,b) = h(t+1,b) * h(t,b) }",
    "used before": "y(t,b) = h(t,b) * h(t,b)  h(t+1,b) = a(t,b) * h(t,b) + x(t,b) }",
    "beside another one": "g(t,b) = tanh(x(t,b))  h(t+1,b) = a(t,b) * h(t,b) + x(t,b) }",
}
OTHERS = {
    "not linear": "h(t+1,b) = tanh(a(t,b) * h(t,b) + x(t,b)) }",
    "a square": "h(t+1,b) = h(t,b) * h(t,b) }",
    "a divisor": "h(t+1,b) = a(t,b) / h(t,b) }",
    "a factor that changes": "g(b) = x(t,b) * h(t,b)  h(t+1,b) = g(b) * h(t,b) }",
    "written twice": "h(t+1,b) = a(t,b) * h(t,b)  h(t+1,b) = 2 * h(t+1,b) }",
}


def specialized(body: str, steps: int = 13, type: str = "float") -> Specialization:
    text = (HEAD + body + " }").replace("float(", f"{type}(")
    if "y(" in body:
        text = text.replace("-> (h)", "-> (h, y)")
    if "g(t" in body:
        text = text.replace("-> (h)", "-> (h, g)")
    return tc.define(text).single().specialize((steps, 3), (steps, 3), (3,))


def made(original: Specialization) -> tuple[Specialization, tuple[LinearRecurrence, ...]]:
    with isl_context() as context:
        changed, found = part_recurrences(original, context, SMALL)
        prove_recurrences(original, changed, found, context)
        return changed, found


@pytest.mark.parametrize("steps", [6, 8, 13])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_recurrences_are_in_parts(name: str, steps: int) -> None:
    changed, (found,) = made(specialized(LINEAR[name], steps))
    assert [own.name for own in changed.program.statements if own.name in found.statements] == list(found.statements)
    assert str(found).endswith(" is a linear recurrence along t, in parts that go on from h_carries")


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_not(name: str) -> None:
    original = specialized(OTHERS[name])
    assert made(original) == (original, ())


def test_those_of_other_types_and_short_ones_are_not() -> None:
    linear = LINEAR["no term"]
    for original in (specialized(linear, 4), specialized(linear, type="double"), specialized(linear, type="float16")):
        assert made(original)[1] == ()


def test_what_is_read_before_it_is_overwritten_stays_in_its_block() -> None:
    text = (
        "def f(float(T) a, float(S) h0) -> (h, y) { h(i) = h0(i) where i in 0:S  "
        "for t in 0:T { y(t) = h(t+2)  h(t+1) = a(t) * h(t) } }"
    )
    assert made(tc.define(text).single().specialize((13,), (15,)))[1] == ()


def changed_at(number: int, change: Callable[[Statement], Statement]) -> Callable[[Program, LinearRecurrence], Program]:
    def mutate(program: Program, own: LinearRecurrence) -> Program:
        name = own.statements[number]
        return replace(program, statements=tuple(change(s) if s.name == name else s for s in program.statements))

    return mutate


def with_value(number: int, value: float) -> Callable[[Program, LinearRecurrence], Program]:
    return changed_at(number, lambda own: replace(own, value=Literal(value, own.value.type)))


def shifted(own: Statement) -> Statement:
    """With every index along parts or steps one further."""

    def change(part: Expression) -> Expression:
        match part:
            case Read("a", (Binary(operator, type=type) as first, *rest)):
                return replace(part, subscripts=(Binary(operator, first, Literal(1, type), type), *rest))
            case _:
                return rebuild(part, change)

    return replace(own, value=change(own.value))


def shorter(own: Statement) -> Statement:
    first, *rest = own.iterators
    assert isinstance(first.end, Literal)
    return replace(own, iterators=(replace(first, end=Literal(first.end.value - 1, first.end.type)), *rest))


def without_offset(own: Statement) -> Statement:
    assert isinstance(own.value, Binary)
    return replace(own, value=own.value.left)


WRONG: dict[str, Callable[[Program, LinearRecurrence], Program]] = {
    "factors that begin with 0": with_value(0, 0.0),
    "offsets that begin with 1": with_value(1, 1.0),
    "factors of the next steps": changed_at(2, shifted),
    "offsets of the next steps": changed_at(3, shifted),
    "a step too few": changed_at(2, shorter),
    "a lost carry": changed_at(5, shorter),
    "carries without offsets": changed_at(5, without_offset),
    "carries that begin anew": with_value(4, 0.0),
    "states that begin anew": with_value(6, 0.0),
    "states of the next steps": changed_at(7, shifted),
    "a part that is not stored": changed_at(8, shorter),
    "no condition": changed_at(8, lambda own: replace(own, conditions=())),
    "stored where it is not": changed_at(8, lambda own: replace(own, subscripts=own.subscripts[::-1])),
    "one block for all": changed_at(5, lambda own: replace(own, blocks=(own.blocks[0] - 1,))),
    "carries without steps": changed_at(5, lambda own: replace(own, blocks=())),
    "twice": lambda program, own: replace(program, statements=(*program.statements, program.statements[-1])),
    "behind the block": lambda program, own: replace(
        program, statements=(*program.statements[:1], *program.statements[-1:], *program.statements[1:-1])
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parts_are_refused(name: str) -> None:
    original = specialized(LINEAR["used in its block"])
    changed, found = made(original)
    wrong = replace(changed, program=WRONG[name](changed.program, found[0]))
    assert wrong != changed
    with isl_context() as context:
        assert find_wrong_recurrence(original, wrong, found, context) is not None
        with pytest.raises(VerificationError, match="the parts of recurrences are not proven correct"):
            prove_recurrences(original, wrong, found, context)


@pytest.mark.parametrize(
    ("name", "target"), every_row(10, [(name, target) for name in LINEAR for target in ("cpu", "emulator", "opencl")])
)
def test_results_are_within_the_bounds_of_the_oracle(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are those of steps one after the other: carries in float64 add nothing that counts."""
    require(target)
    monkeypatch.setattr(attempts, "_parting", lambda machine: replace(SMALL, steps=16))
    body = LINEAR[name]
    text = HEAD + body + " }"
    text = text.replace("-> (h)", "-> (h, y)") if "y(" in body else text
    f = tc.define(text.replace("-> (h)", "-> (h, g)") if "g(t" in body else text).single()
    random = np.random.default_rng(0)
    arrays = [random.uniform(-1, 1, shape).astype("f4") for shape in ((100, 3), (100, 3), (3,))]
    options = (tc.CpuOptions if target == "cpu" else tc.GpuOptions)(numerics=REASSOCIATE)
    kernel = f.compile(*arrays, target=target, options=options)
    assert any(stage.name == "recurrences" for stage in kernel.stages)
    results = kernel(*arrays)
    found = dict(zip(f.program.results, results if isinstance(results, tuple) else (results,), strict=True))
    for result, expected in f.oracle(*arrays).items():
        assert compare(expected, np.asarray(found[result])).ok


SELECTIVE_SCAN = """
def f(float(L,B,D) x, float(L,B,D) dt, float(D,N) A, float(L,B,N) P, float(L,B,N) Q) -> (y) {
    s(0,b,d,n) = float(0) where b in 0:B, d in 0:D, n in 0:N
    for t in 0:L {
        s(t+1,b,d,n) = exp(dt(t,b,d) * A(d,n)) * s(t,b,d,n) + dt(t,b,d) * P(t,b,n) * x(t,b,d)
        y(t,b,d) +=! s(t+1,b,d,n) * Q(t,b,n)
    }
}
"""


@pytest.mark.parametrize("target", every(2, ["emulator", "cpu"]))
def test_a_selective_scan(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_parting", lambda machine: SMALL)
    random = np.random.default_rng(0)
    shapes = ((37, 2, 3), (37, 2, 3), (3, 4), (37, 2, 4), (37, 2, 4))
    arrays = [random.uniform(-1, 0 if n == 2 else 1, shape).astype("f4") for n, shape in enumerate(shapes)]
    f = tc.define(SELECTIVE_SCAN).single()
    options = (tc.CpuOptions if target == "cpu" else tc.GpuOptions)(numerics=REASSOCIATE)
    kernel = f.compile(*arrays, target=target, options=options)
    assert any(stage.name == "recurrences" for stage in kernel.stages)
    assert compare(f.oracle(*arrays)["y"], np.asarray(kernel(*arrays))).ok


@pytest.mark.parametrize("numerics", [tc.Numerics(), REASSOCIATE])
def test_they_are_asked_for(numerics: tc.Numerics) -> None:
    f = tc.define(HEAD + LINEAR["no term"] + " }").single()
    text = f.explain((300, 2), (300, 2), (2,), target="emulator", options=tc.GpuOptions(numerics=numerics))
    assert ("== recurrences ==\nS1 is a linear recurrence along t" in text) == numerics.reassociate


def test_rows_that_are_far_apart_are_no_lanes() -> None:
    """GCC 12 compiles vector loops for minutes that leave out thousands of elements between two."""
    f = tc.define(
        "def f(float(B,T) a, float(B) s0) -> (s) { s(b) = s0(b) for t in 0:T { s(b) = a(b,t) * s(b) + 1 } }"
    ).single()
    assert "omp simd" not in f.compile((16, 4096), (16,)).source.partition("S1")[2]
