"""The prelude: its sections stand on their own feet, and sources get those with the names that they mention."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from tc.codegen.text.numerics import Section, prelude, sections
from tests.codegen.harness import compile_c
from tests.turns import one_in

HEADERS = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"


@one_in(4)
@pytest.mark.parametrize("section", sections(), ids=lambda section: section.provides[0])
def test_a_section_compiles_with_what_it_mentions(section: Section) -> None:
    compile_c(f"{HEADERS}{prelude(section.uses | {section.provides[0]})}\n")


def test_sections_define_what_they_promise_and_nothing_twice() -> None:
    for section in sections():
        others = [other for other in sections() if other is not section]
        names = set(re.findall(r"\w+", section.text))
        for pattern in section.provides:
            found = [name for name in names if Section((pattern,), frozenset(), "").defines(name)]
            # Macros paste the names of families together.
            assert found or "##" in section.text or any(own.startswith("TC_") for own in section.uses), pattern
            assert not [name for name in found for other in others if other.defines(name)], pattern


def test_names_are_those_of_patterns_as_of_files() -> None:
    for section in sections():
        for pattern in section.provides:
            names = {pattern.replace("*", filling) for filling in ("", "u", "32", "a_b")} | {pattern[1:], pattern + "_"}
            names |= {name[:at] + name[at + 1 :] for name in names for at in range(len(name))}
            own = Section((pattern,), frozenset(), "")
            assert {name for name in names if own.defines(name)} == {n for n in names if fnmatchcase(n, pattern)}


def test_a_source_gets_what_it_mentions_in_order() -> None:
    text = prelude({"x", "tc_normcdfinv_float32", "y"})
    needed = ("tc_erfcx_float64(double", "tc_erfcinv_float64(double", "tc_normcdfinv_float32(float")
    assert [text.index(name) for name in needed] == sorted(text.index(name) for name in needed)
    assert "tc_bfloat16" not in text
    assert prelude({"x", "y"}) == ""
