"""Options by the names that they had in the release before."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import tc
from tc.targets.renamed import RENAMED

KINDS: dict[str, Any] = {"CpuOptions": tc.CpuOptions, "GpuOptions": tc.GpuOptions}
NAMES = [(kind, old, new) for kind, names in RENAMED.items() for old, new in names.items()]


def test_every_new_name_is_an_option_and_no_old_one() -> None:
    for kind, old, new in NAMES:
        names = {field.name for field in dataclasses.fields(KINDS[kind])}
        assert new in names
        assert old not in names


@pytest.mark.parametrize(("kind", "old", "new"), NAMES)
def test_json_with_an_old_name_is_read(kind: str, old: str, new: str) -> None:
    value = {"split": [4, 2], "lane": 0}.get(old, 2)
    read = KINDS[kind].from_json(json.dumps({old: value}))
    assert json.loads(read.to_json())[new] == value
    assert read == KINDS[kind].from_json(json.dumps({new: value}))
    with pytest.raises(
        tc.OptionsError, match=f"^{new} stands in the options twice, once by its old name; write it once$"
    ):
        KINDS[kind].from_json(json.dumps({old: value, new: value}))


@pytest.mark.parametrize(("kind", "old", "new"), NAMES)
def test_python_is_told_the_new_name(kind: str, old: str, new: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{kind} has no option '{old}'; it is called {new} now$"):
        KINDS[kind](**{old: 1})
    with pytest.raises(tc.OptionsError, match=f"^{kind} has no option '{old}'; it is called {new} now$"):
        dataclasses.replace(KINDS[kind](), **{old: 1})
    with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute '{old}'; it is called {new} now$"):
        getattr(KINDS[kind](), old)


def test_other_names_are_no_options() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        KINDS["CpuOptions"](colour=1)
    with pytest.raises(AttributeError, match=r"^'GpuOptions' object has no attribute 'packed'$"):
        KINDS["GpuOptions"]().packed  # noqa: B018  it is looked up
    with pytest.raises(
        tc.OptionsError,
        match=r"GpuOptions has no option 'lane'; tc\.CpuOptions has one, which is called vector_axis now",
    ):
        tc.GpuOptions.from_json('{"lane": 1}')
