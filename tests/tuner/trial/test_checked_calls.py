"""What a candidate must give: of a recurrence, what follows from what it gave for earlier steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tc.base.types import ScalarType
from tc.language.program.specialization import ArraySpec, Signature
from tc.reference.kept import deviation
from tc.tuner.trial.checked_calls import Expected, keep_calls, specialized_calls
from tc.tuner.trial.task import Task, parse_task
from tests.comprehensions.recurrence import CASES


def test_candidates_are_judged_step_by_step(tmp_path: Path) -> None:
    text = next(case.text for case in CASES if case.name == "recurrent_network")
    shapes = {"x": (60, 2, 3), "W": (3, 9), "U": (9, 9), "h0": (2, 9)}
    specs = tuple((name, ArraySpec(shape, ScalarType.FLOAT32)) for name, shape in shapes.items())
    task = Task(text, "rnn", Signature(specs), "cpu")
    random = np.random.default_rng(4)
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    keep_calls(specialized_calls(task, parse_task(task)), arrays, {}, tmp_path)
    expected = Expected(task, tmp_path)

    def found(wrong: float) -> float | str:
        states = [arrays["h0"]]
        for t, x in enumerate(arrays["x"]):
            states.append(np.tanh(x @ arrays["W"] + states[-1] @ arrays["U"]) * np.float32(1 + wrong * (t == 40)))
        given = np.array(states)
        return deviation((given,), expected.of(0, arrays, {"h": given}))

    assert isinstance(found(0), float)
    assert "result 0, counted from row 0: outside the bound" in str(found(1e-4))


def test_other_results_are_kept(tmp_path: Path) -> None:
    task = Task(
        "def f(float(N) x) -> (y) { y(i) = 2 * x(i) }",
        "f",
        Signature((("x", ArraySpec((3,), ScalarType.FLOAT32)),)),
        "cpu",
    )
    x = np.arange(3, dtype=np.float32)
    keep_calls(specialized_calls(task, parse_task(task)), {"x": x}, {}, tmp_path)
    (result,) = Expected(task, tmp_path).of(0, {"x": x}, {"y": x})
    np.testing.assert_array_equal(result.values, 2 * x)
