"""The helpers of languages: what CUDA and OpenCL define themselves, each with what it mentions."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tc.base.environment import environment
from tc.codegen.text.dialect import CUDA, EMULATOR, OPENCL, C
from tc.codegen.text.numerics import headers, prelude, sections
from tc.runtime.host.c_compiler import find_compiler


@pytest.mark.parametrize("own", [CUDA.prelude, OPENCL.prelude])
def test_sections_use_only_sections_before_them(own: str) -> None:
    found = sections(own)
    for number, section in enumerate(found):
        later = [name for other in found[number + 1 :] for name in other.provides if name in section.uses]
        # A name that a language has, too, is that of the language.
        assert not [name for name in later if not any(other.defines(name) for other in found[: number + 1])], section


def test_a_language_has_its_own_helpers_in_place_of_those_of_all() -> None:
    shared, own = prelude({"tc_max_float32"}), prelude({"tc_max_float32"}, CUDA.prelude)
    assert "TC_FLOATING_EXTREMES" in shared
    assert "max.NaN.f32" in own
    assert "TC_FLOATING_EXTREMES" not in own


def test_cuda_compiles_each_helper_with_what_it_mentions() -> None:
    pytest.importorskip("cuda.bindings")
    from tests.cuda.nvrtc_ptx import ptx_of

    for section in sections(CUDA.prelude)[: _own(CUDA.prelude)]:
        ptx_of(prelude(section.uses | {section.provides[0]}, CUDA.prelude) + "\n", "sm_80")


def _own(prelude: str | None) -> int:
    return len(sections(prelude)) - len(sections())


def test_functions_and_constants_of_the_library_are_in_its_header() -> None:
    assert "math.h" not in headers(frozenset({"tc_add_float32x16", "t_exp"}), C.prelude)
    for name in ("expf", "sqrt", "INFINITY", "NAN", "tc_fdim_float32", "tc_lgamma_float64"):
        assert headers(frozenset({name}), C.prelude)[0] == "math.h"


def test_what_sections_call_of_the_library_is_known_to_be_there() -> None:
    found = subprocess.run(
        [*find_compiler(environment()).command, "-std=gnu11", "-E", "-include", "math.h", "-x", "c", os.devnull],
        capture_output=True,
        check=True,
        text=True,
    )
    declared = set(re.findall(r"\b([a-z]\w*) \(", found.stdout))
    assert {"sqrt", "expf"} <= declared
    for own in (C.prelude, EMULATOR.prelude):
        for section in sections(own):
            for name in declared.intersection(re.findall(r"\b([a-z]\w*)\(", section.text)):
                assert headers(frozenset({name}), own)[0] == "math.h", name
