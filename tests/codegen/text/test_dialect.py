"""The statements of the dialects: they say which names they mention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields

import pytest

from tc.codegen.text.dialect import CUDA, EMULATOR, OPENCL, C, Dialect
from tc.codegen.text.fragment import Template
from tc.codegen.text.numerics import sections

DIALECTS = {"c": C, "emulator": EMULATOR, "cuda": CUDA, "opencl": OPENCL}


def templates(dialect: Dialect) -> Iterator[Template]:
    for field in fields(dialect):
        value = getattr(dialect, field.name)
        yield from (t for t in (value.values() if isinstance(value, Mapping) else (value,)) if isinstance(t, Template))


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_statements_mention_what_stands_in_them(dialect: Dialect) -> None:
    found = list(templates(dialect))
    assert len(found) > 3
    for template in found:
        words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\{\w+\}", "", template.text)))
        assert template.names <= words, template
        asked = {"fault", "faulted", "team", *(w for w in words for s in sections() if s.defines(w))}
        assert words & asked == template.names & asked, template
