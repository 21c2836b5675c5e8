"""Options of a whole text: every call that names none uses them, and only on targets that take them."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc

TEXT = """
def double(float(N) x) -> (y) { y(i) = x(i) + x(i) }
def sums(float(M,N) A) -> (s) { s(i) +=! A(i,r_j) }
"""
CPU = tc.CpuOptions(tc.ScheduleOptions(tile=(8,)), threads=1)
GPU = tc.GpuOptions(block=(32,))
x = np.arange(65, dtype=np.float32)
A = np.arange(65 * 33, dtype=np.float32).reshape(65, 33)


@pytest.mark.parametrize("options", [CPU, [CPU], (GPU, CPU)])
def test_calls_of_every_definition_use_them(options: Any) -> None:
    defs = tc.define(TEXT, options=options)
    assert defs.double.compile(x).asked == CPU
    assert defs.sums.compile(A).asked == CPU
    assert defs.double.compile((tc.dynamic(99),)).asked == CPU
    np.testing.assert_array_equal(defs.double(x), 2 * x)
    np.testing.assert_array_equal(defs.double(x[:7]), 2 * x[:7])
    assert '"threads":1' in defs.double.explain(x) or "threads=1" in defs.double.explain(x)


def test_a_call_may_name_others() -> None:
    defs = tc.define(TEXT, options=CPU)
    assert defs.double.compile(x, options=tc.CpuOptions()).asked == tc.CpuOptions()
    assert defs.double.candidates(x).compile().asked == CPU


def test_each_target_has_its_own() -> None:
    defs = tc.define(TEXT, options=[CPU, GPU])
    assert defs.double.compile(x, target="emulator").asked == GPU
    assert defs.double.compile(x).asked == CPU


def test_targets_that_take_others_are_refused() -> None:
    defs = tc.define(TEXT, options=CPU)
    message = (
        "target 'emulator:x86-64' takes tc.GpuOptions, and the text was defined with tc.CpuOptions alone; give "
        "tc.define a list with both, or pass options=tc.GpuOptions() to the call"
    )
    shown = message.replace("emulator:x86-64", str(tc.define(TEXT).double.compile(x, target="emulator").target))
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(shown)}$"):
        defs.double(x, target="emulator")
    np.testing.assert_array_equal(defs.double(x, target="emulator", options=GPU), 2 * x)


def test_options_that_no_kernel_can_have_are_refused_in_the_call() -> None:
    defs = tc.define(TEXT, options=tc.CpuOptions(tc.ScheduleOptions(tile=(8, 8, 8))))
    with pytest.raises(tc.OptionsError, match="tile"):
        defs.double(x)


WRONG: list[tuple[Any, str]] = [
    (
        "fast",
        "tc.define takes options as tc.CpuOptions(...), tc.GpuOptions(...) or a list with one of each, got 'fast'",
    ),
    (tc.ScheduleOptions(), "tc.define takes options as tc.CpuOptions(...), "),
    ([CPU, CPU], "tc.define takes one tc.CpuOptions, got several; leave all but one out"),
    ([GPU, CPU, GPU], "tc.define takes one tc.GpuOptions, got several; leave all but one out"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_are_no_options_is_refused(options: Any, message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}"):
        tc.define(TEXT, options=options)


def test_options_and_a_search_exclude_each_other() -> None:
    with pytest.raises(tc.OptionsError, match=r"^tc.define takes options or tune, not both: one says which options"):
        tc.define(TEXT, tune="1s", options=CPU)


def test_copies_keep_them() -> None:
    copied = pickle.loads(pickle.dumps(tc.define(TEXT, options=CPU).double))
    assert copied.compile(x).asked == CPU


@pytest.mark.usefixtures("brief_searches")
def test_a_winner_takes_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the machine allows takes long to measure, and decides nothing here.
    monkeypatch.setattr("tc.tuner.session.search_setup._bound", lambda _work, _target, _device: None)
    defs = tc.define(TEXT, options=CPU)
    defs.double(x)
    found = defs.double.tune(x, budget="1 trial", cache=tmp_path / "tuned.db", progress=False)
    assert found.best == tc.CpuOptions()
    assert defs.double.compile(x).asked == tc.CpuOptions()
