"""The README says what happens."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tc

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_its_programs_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some of them write files
    names: dict[str, object] = {}
    for program in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(program, names)
    np.testing.assert_array_equal(names["C"], np.full((64, 48), 32.0))
    np.testing.assert_array_equal(names["y"], [0.5, 2.5, 4.5, 6.5])


def test_its_layer_is_a_definition() -> None:
    (text,) = re.findall(r"```\n(def conv2d.*?)```", README, re.DOTALL)
    assert list(tc.define(text)) == ["conv2d"]


def test_its_error_is_what_comes() -> None:
    (message,) = re.findall(r"```\n(\d+:\d+: .*?)\n```", README, re.DOTALL)
    text = message.splitlines()[1].strip()
    with pytest.raises(tc.RangeError) as caught:
        tc.define(text)
    assert str(caught.value) == message
