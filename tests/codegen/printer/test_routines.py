"""Routines have the parameters that their bodies mention, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tc
from tests.conftest import DIRECTORY
from tests.translated import translated

ROUTINE = re.compile(r"^\S.* void (tc_(?:kernel|region)\w*)\(([^)]*)\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
UNUSED = """
def unused(float(N) x, float(M) idle, float s, float pause) -> (y, z) {
  y(i) = s * x(i)
  z(i) = x(i) + 1 where i in 0:N
}
"""


def routines(text: str) -> dict[str, tuple[set[str], set[str]]]:
    """The routines of a source: their parameters, and the words in their bodies, comments aside."""
    found = ROUTINE.findall(re.sub(r"//.*", "", text))
    return {
        name: ({p.split()[-1].lstrip("*") for p in parameters.split(",")} - {"void"}, set(re.findall(r"\w+", body)))
        for name, parameters, body in found
    }


@pytest.mark.parametrize("path", sorted((DIRECTORY / "codegen").iterdir()), ids=lambda path: path.name)
def test_parameters_are_what_is_used(path: Path) -> None:
    found = routines(path.read_text(encoding="utf-8"))
    assert found
    for function, (parameters, words) in found.items():
        assert parameters <= words, function


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "emulator", "cuda:sm_90", "opencl"])
def test_what_a_kernel_does_not_use_is_no_parameter(target: str) -> None:
    text = translated(tc.define(UNUSED).unused, (100,), (7,), 1.0, 2.0, target=target).source.text
    found = routines(text)
    named = set[str]().union(*(parameters for parameters, _ in found.values()))
    assert {"t_x", "t_y", "t_z", "s_s"} <= named
    assert not named & {"t_idle", "s_pause"}
    assert all(parameters <= words for parameters, words in found.values())
    # Nor are helpers defined, or coordinates computed, that nothing asks for.
    assert "tc_floor_divide" not in text
    assert "block_y" not in text
