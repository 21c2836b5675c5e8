"""Which calls a kernel with open sizes serves, and which kernel serves a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc
from tc.api.kernels import Kernels
from tc.language.program.specialization import ArraySpec, Signature, SymbolicSize, contiguous_strides
from tests.programs import run
from tests.symbolic.programs import FLOAT, MM


def test_which_calls_a_signature_covers() -> None:
    size = SymbolicSize(9, (("a", 0), ("b", 0)))
    opened = Signature((("a", ArraySpec((9, 4), FLOAT)), ("b", ArraySpec((9,), FLOAT))), symbolic=(size,))

    def call(a: tuple[int, ...], b: tuple[int, ...], **changes: Any) -> Signature:
        return replace(Signature((("a", ArraySpec(a, FLOAT)), ("b", ArraySpec(b, FLOAT)))), **changes)

    assert opened.sizes_of(call((5, 4), (5,))) == (5,)
    assert opened.sizes_of(call((9, 4), (9,))) == (9,)
    for other in (
        call((10, 4), (10,)),
        call((0, 4), (0,)),
        call((5, 4), (6,)),
        call((5, 4), (5,), scalars=(("s", 1),)),
        call((5, 4), (5,), aliases=(("c", "b"),)),
        call((5, 4), (5,), results=(("c", ArraySpec((5,), FLOAT, (2,))),)),
        Signature((("a", ArraySpec((5, 4), FLOAT)),)),
    ):
        assert opened.sizes_of(other) is None
    for misfit in (call((10, 4), (10,)), call((0, 4), (0,)), call((5, 4), (6,))):
        assert misfit.opened((size,)) is None
    assert call((5, 4), (5,)).opened((size,)) == opened
    assert call((5, 3), (5,)).opened((size,)) != opened
    assert opened.settled == call((9, 4), (9,))
    assert opened.settled.sizes_of(opened.settled) == ()
    assert contiguous_strides((9, 4)) == (4, 1)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shapes of everything that is compiled from now on."""
    shapes: list[str] = []
    honest = Kernels.compile

    def compile(self: Kernels, signature: Signature, *given: Any) -> Any:
        shapes.append(f"[{', '.join(signature.extents('A'))}]")
        return honest(self, signature, *given)

    monkeypatch.setattr(Kernels, "compile", compile)
    return shapes


def _call(mm: tc.Comprehension, size: int, **given: Any) -> None:
    a, b = np.ones((size, 16), np.float32), np.ones((16, 8), np.float32)
    np.testing.assert_array_equal(mm(a, b, **given), np.full((size, 8), 16, np.float32))


def test_calls_are_served_without_compiling(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8))
    for size in (1, 5, 64, 5, 17, 1):
        _call(mm, size)
    assert compiled == ["[1..64, 16]"]
    _call(mm, 65)
    _call(mm, 65)
    assert compiled == ["[1..64, 16]", "[65, 16]"]


def test_the_smallest_bound_serves(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    small, large = (mm.compile((tc.dynamic(most), 16), (16, 8)) for most in (20, 64))
    assert mm.compile((20, 16), (16, 8)) is small
    assert mm.compile((21, 16), (16, 8)) is large
    assert len(compiled) == 2


def test_other_options_and_targets_are_other_kernels(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8), options=tc.CpuOptions(threads=1))
    _call(mm, 9, options=tc.CpuOptions(threads=1))
    assert compiled == ["[1..64, 16]"]
    _call(mm, 9)
    _call(mm, 9, target="emulator")
    assert compiled == ["[1..64, 16]", "[9, 16]", "[9, 16]"]


def test_a_kernel_of_this_very_size_goes_first(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    own = mm.compile((9, 16), (16, 8))
    mm.compile((tc.dynamic(64), 16), (16, 8))
    assert mm.compile((9, 16), (16, 8)) is own
    assert compiled == ["[9, 16]", "[1..64, 16]"]


PRODUCTION = f"""
import sys, numpy as np, tc
mm = tc.define({MM!r}).mm
for size in (1, 5, 33, 64):
    a, b = np.ones((size, 16), np.float32), np.ones((16, 8), np.float32)
    np.testing.assert_array_equal(mm(a, b), np.full((size, 8), 16, np.float32))
print(*sorted(name for name in ("islpy", "lark", "sqlalchemy") if name in sys.modules))
try:
    mm(np.ones((65, 16), np.float32), b)
except tc.CacheError as error:
    print(error)
"""


def test_production_serves_sizes_that_were_not_seen(tmp_path: Path) -> None:
    from tc.cache.content.ship import ship

    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    run(f"import tc; tc.define({MM!r}).mm.compile((tc.dynamic(64), 16), (16, 8))", environment=settings)
    ship(tmp_path / "k.db", tmp_path / "shipped.db")
    strict = {"TC_CACHE_MODE": "strict", "TC_CACHE": str(tmp_path / "shipped.db")}
    loaded, *miss = run(PRODUCTION, environment=strict).splitlines()
    assert loaded == ""
    assert "has no kernel for mm(A: float32[65, 16], B: float32[16, 8])" in miss[0]
    assert any(line.split() == ["symbolic", "wanted", "[]"] for line in miss)
    assert any(line.split() == ["there", "[[64,[[0,0]]]]"] for line in miss)


VARIANTS = f"""
import sys, numpy as np, tc
mm = tc.define({MM!r}).mm
for m, k, n in ((1, 1, 1), (9, 8, 7), (10, 8, 7), (64, 48, 32), (2, 48, 1)):
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    np.testing.assert_array_equal(mm(a, b), np.full((m, n), k, np.float32))
    print(mm.compile(a, b).signature.symbolic[0].most)
print(*sorted(name for name in ("islpy", "lark", "sqlalchemy") if name in sys.modules))
"""


def test_production_chooses_among_kernels_with_several_bounds(tmp_path: Path) -> None:
    from tc.cache.content.ship import ship

    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    compile = "mm.compile((tc.dynamic(m), tc.dynamic(k)), (tc.dynamic(k), tc.dynamic(n)))"
    bounds = "((64, 48, 32), (9, 8, 7))"
    run(f"import tc\nmm = tc.define({MM!r}).mm\nfor m, k, n in {bounds}: {compile}", environment=settings)
    ship(tmp_path / "k.db", tmp_path / "shipped.db")
    strict = {"TC_CACHE_MODE": "strict", "TC_CACHE": str(tmp_path / "shipped.db")}
    assert run(VARIANTS, environment=strict).split() == ["9", "9", "64", "64", "64"]


def test_renamed_definitions_are_served_too(tmp_path: Path) -> None:
    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    run(f"import tc; tc.define({MM!r}).mm.compile((tc.dynamic(64), 16), (16, 8))", environment=settings)
    other = "def mul(float(R,S) X, float(S,T) Y) -> (Z) { Z(a,b) +=! X(a,c) * Y(c,b) }"
    program = f"""
import numpy as np, sys, tc
x, y = np.ones((31, 16), np.float32), np.ones((16, 8), np.float32)
np.testing.assert_array_equal(tc.define({other!r}).mul(x, y), np.full((31, 8), 16, np.float32))
print("compiled" if "tc.compiler" in sys.modules else "found")
"""
    assert run(program, environment=settings).strip() == "found"


def test_warm_calls_of_many_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once every size was seen, signatures are not looked at any more."""
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8))
    for size in (3, 40, 64):
        _call(mm, size)

    def never(*_: object) -> None:
        raise AssertionError("this call is not warm")

    monkeypatch.setattr(Kernels, "get", never)
    for size in (64, 3, 40):
        _call(mm, size)
    with pytest.raises(AssertionError, match="not warm"):
        _call(mm, 41)


def test_what_it_says_of_itself() -> None:
    kernel: Callable[..., object] = tc.define(MM).mm.compile((tc.dynamic(64), 16), (16, 8))
    assert repr(kernel).startswith("<tc.Kernel mm(A[1..64, 16], B[16, 8]) for cpu:")
    text = tc.define(MM).mm.explain((tc.dynamic(64), 16), (16, 8))
    assert "size_M" in text
