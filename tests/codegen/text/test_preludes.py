"""The helpers of languages: what CUDA and OpenCL define themselves, each with what it mentions."""

from __future__ import annotations

import pytest

from tc.codegen.text.dialect import CUDA, OPENCL
from tc.codegen.text.numerics import prelude, sections


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
