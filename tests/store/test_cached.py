"""Calls and the cache: what is kept, what is found, and what a process needs that only reads."""

from __future__ import annotations

import re
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import tc
from tc.artifact.definition import Definition, Parsed
from tc.artifact.executable import Executable
from tc.artifact.packing import pack, unpack
from tc.base.environment import Environment, environment
from tc.cache.content.configured import Configuration, Mode, configured
from tc.cache.content.lookup import Reader
from tc.cache.format.ingredients import Ingredients
from tc.dispatch.kernel import Kernel
from tc.grammar.parser import parse
from tc.language.lower.lower import lower_text
from tc.language.program.specialization import ArraySpec
from tc.runtime.host.libc import check_libc, required_libc
from tc.store.cached import KernelCache
from tc.store.wanted import Wanted, extents_of, shapes_text
from tc.targets.options import CpuOptions, GpuOptions
from tc.targets.target import parse_target
from tests.cache.samples import library_trial, set_version
from tests.commands.caches import measure
from tests.opencl import require
from tests.programs import run

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
PICK = "def pick(double s, float(N) X, int32(M) I) -> (Y) { Y(i) = X(I(i)) * s }"
CPU = parse_target("cpu")


def definitions(text: str) -> dict[str, Definition]:
    return {name: Parsed(program, text) for name, program in lower_text(parse(text), text).items()}


def wanted(text: str = MM, name: str | None = None, *arguments: object, **changes: object) -> Wanted:
    """A kernel of a definition for arguments, with default options."""
    found = definitions(text)
    definition = found[name] if name is not None else next(iter(found.values()))
    from tc.dispatch.arguments import bind_specs

    signature = bind_specs(definition.interface, arguments or ((7, 13), (13, 5)))
    return replace(Wanted(definition, signature, CPU, None), **changes)  # type: ignore[arg-type]


def cache(path: Path, mode: Mode = Mode.STORE, *, own: bool = False, key: bytes | None = None) -> KernelCache:
    return KernelCache(Configuration(str(path), mode, key, own), environment())


def executable(want: Wanted) -> Executable:
    from tc.compiler import build
    from tc.language.lower.specialize import specialize

    options = want.options or (CpuOptions() if str(want.target).startswith("cpu") else GpuOptions())
    program = specialize(want.definition.program, want.signature)
    return build(program, want.definition.interface, options, want.target, environment()).executable


def keep(path: Path, want: Wanted) -> Executable:
    made = executable(want)
    cache(path).keep(want, {want.definition.interface.name: want.definition}, made)
    return made


# --- executables as data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64", "emulator", "opencl", "cuda:sm_90"])
def test_executables_come_back_as_they_went(target: str) -> None:
    text = "def f(float(N) X, int32(M) I, int s) -> (Y) { Y(i) = X(I(i)) * s }"
    require(target)
    made = executable(wanted(text, "f", (9,), (4,), 3, target=parse_target(target)))
    packed = pack(made)
    assert unpack(packed) == made
    for broken in (packed[:40], b"[]\n", b"{}\n", packed.replace(b'"about"', b'"abaut"', 1), b"\xff\n"):
        with pytest.raises(ValueError, match=r".+"):
            unpack(broken)


# --- keys ------------------------------------------------------------------------------------------------------------

SAME = [
    "def mul(float(R,S) X, float(S,T) Y) -> (Z) { Z(a,b) +=! X(a,c) * Y(c,b) }",
    "# a comment\ndef mm(float(M,K)   A, float(K,N) B) -> (C) {\n C(i,j) +=! A(i,kk)*B(kk,j) }",
    "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) where k in 0:K }",
]


@pytest.mark.parametrize("text", SAME)
def test_renaming_is_a_hit(tmp_path: Path, text: str) -> None:
    keep(tmp_path / "k.db", wanted())
    other = wanted(text)
    found = cache(tmp_path / "k.db").find(other)
    assert found is not None
    kernel = Kernel(found)
    a, b = np.arange(91, dtype=np.float32).reshape(7, 13), np.arange(65, dtype=np.float32).reshape(13, 5)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert [name for name, _ in kernel.signature.arguments] == list(other.definition.interface.arguments)
    with pytest.raises(tc.ArgumentError, match=f"argument {other.definition.interface.arguments[1]} of"):
        kernel(a, b.astype(np.float64))


OTHERS: dict[str, Callable[[], Wanted]] = {
    "program": lambda: wanted(MM.replace("* B", "+ B")),
    "order of arguments": lambda: wanted(
        MM.replace("float(M,K) A, float(K,N) B", "float(K,N) B, float(M,K) A"), "mm", (13, 5), (7, 13)
    ),
    "shapes": lambda: wanted(MM, "mm", (7, 13), (13, 6)),
    "dtypes": lambda: wanted(MM.replace("float", "double")),
    "strides": lambda: wanted(MM, "mm", ArraySpec((7, 13), tc.ScalarType.FLOAT32, (1, 7)), (13, 5)),
    "strides of a result": lambda: _with_signature(results=(("C", ArraySpec((7, 5), tc.ScalarType.FLOAT32, (1, 7))),)),
    "aliases": lambda: _with_signature(aliases=(("C", "A"),)),
    "target": lambda: wanted(target=parse_target("emulator")),
    "architecture": lambda: wanted(target=parse_target("cpu:x86-64")),
}


def _with_signature(**changes: object) -> Wanted:
    want = wanted()
    return replace(want, signature=replace(want.signature, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("what", OTHERS)
def test_every_ingredient_of_a_call_counts(tmp_path: Path, what: str) -> None:
    keep(tmp_path / "k.db", wanted())
    assert cache(tmp_path / "k.db").find(wanted()) is not None
    assert cache(tmp_path / "k.db").find(OTHERS[what]()) is None


def test_structural_scalars_count_and_others_do_not(tmp_path: Path) -> None:
    text = "def f(float(N) X, int s, float t) -> (Y) { Y(i) = X(i + s) * t where i in 0:4 }"
    keep(tmp_path / "k.db", wanted(text, "f", (9,), 3, 1.5))
    assert cache(tmp_path / "k.db").find(wanted(text, "f", (9,), 3, 2.5)) is not None
    assert cache(tmp_path / "k.db").find(wanted(text, "f", (9,), 2, 1.5)) is None


@pytest.mark.parametrize("field", [field.name for field in fields(Ingredients)])
def test_every_ingredient_changes_the_key(field: str) -> None:
    """Also those that a test cannot change on this machine: versions, and what is the same everywhere yet."""
    ingredients = wanted().ingredients("cc 12")
    changed = replace(ingredients, **{field: getattr(ingredients, field) + " "})
    assert changed.key != ingredients.key
    assert ingredients.difference(changed) == ((field, getattr(ingredients, field), getattr(changed, field)),)


def test_options_and_threads_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = CpuOptions(threads=1)
    keep(tmp_path / "k.db", wanted(options=options))
    assert cache(tmp_path / "k.db").find(wanted()) is None
    found = cache(tmp_path / "k.db").find(wanted(options=options))
    assert found is not None
    assert found.asked == options
    monkeypatch.setattr("tc.store.wanted.available_threads", lambda: 4096)
    assert cache(tmp_path / "k.db").find(wanted(options=options)) is None
    # Where nothing may be compiled, a kernel for another number of threads is better than none.
    assert cache(tmp_path / "k.db", Mode.WARN).find(wanted(options=options)) is not None


# --- modes -----------------------------------------------------------------------------------------------------------


def test_what_is_only_read_is_never_written(tmp_path: Path) -> None:
    want = wanted()
    made = keep(tmp_path / "k.db", want)
    before = (tmp_path / "k.db").read_bytes()
    other = wanted(MM, "mm", (7, 13), (13, 6))
    for mode in (Mode.WARN, Mode.STRICT):
        reading = cache(tmp_path / "k.db", mode)
        assert reading.find(want) == made
        reading.keep(other, {}, executable(other))
    assert (tmp_path / "k.db").read_bytes() == before
    assert not list(tmp_path.glob("*-wal"))


def test_strict_says_how_the_nearest_entry_differs(tmp_path: Path) -> None:
    keep(tmp_path / "k.db", wanted())
    reading = cache(tmp_path / "k.db", Mode.STRICT)
    with pytest.raises(tc.CacheError) as caught:
        reading.find(wanted(MM, "mm", (7, 13), (13, 6)))
    text = str(caught.value)
    assert "k.db has no kernel for mm(A: float32[7, 13], B: float32[13, 6]) on cpu:" in text
    assert re.search(r"shapes +wanted \[\[7,13\],\[13,6\]\]\n +there \[\[7,13\],\[13,5\]\]", text)
    assert text.endswith("compile or tune it elsewhere, and ship the file again")
    with pytest.raises(tc.CacheError, match="it has the kernel with other options"):
        reading.find(wanted(options=CpuOptions(threads=7)))


def test_a_missing_file_is_an_error_where_it_is_only_read(tmp_path: Path) -> None:
    for mode in (Mode.WARN, Mode.STRICT):
        with pytest.raises(tc.CacheError, match=r"k\.db"):
            cache(tmp_path / "k.db", mode).find(wanted())
    assert cache(tmp_path / "k.db").find(wanted()) is None
    assert not (tmp_path / "k.db").exists()


def test_an_empty_file_is_a_cache_that_is_being_made(tmp_path: Path) -> None:
    (tmp_path / "k.db").touch(0o600)
    assert cache(tmp_path / "k.db").find(wanted()) is None
    for mode in (Mode.WARN, Mode.STRICT):
        with pytest.raises(tc.CacheError, match=r"k\.db is empty; make a cache with tc-tune, or name another file"):
            cache(tmp_path / "k.db", mode).find(wanted())
    keep(tmp_path / "k.db", wanted())
    assert cache(tmp_path / "k.db").find(wanted()) is not None


def test_a_cache_of_an_older_version_is_brought_up_to_date_where_it_is_written(tmp_path: Path) -> None:
    path, want = tmp_path / "k.db", wanted()
    made = keep(path, want)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE library_trials")
    set_version(path, "1")
    with pytest.raises(tc.CacheError, match="was written by an older tc"):
        cache(path, Mode.STRICT).find(want)
    assert cache(path).find(want) == made
    trial = library_trial()
    cache(path).keep_library_trial(trial)
    place = (trial.work, trial.machine, trial.threads, trial.library, trial.generator)
    assert cache(path, Mode.STRICT).library_trial(*place) == trial
    assert cache(path, Mode.STRICT).library_trial(*place[:-1], "another") is None
    cache(path, Mode.STRICT).keep_library_trial(library_trial(1))  # which is only read
    assert cache(path).library_trial(library_trial(1).work, *place[1:]) is None


def test_warn_compiles_and_says_so_once(tmp_path: Path) -> None:
    keep(tmp_path / "k.db", wanted())
    reading = cache(tmp_path / "k.db", Mode.WARN)
    with pytest.warns(tc.CacheWarning, match=r"(?s)no kernel for mm.*it is compiled with default options"):
        assert reading.find(wanted(MM, "mm", (7, 13), (13, 6))) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reading.find(wanted(MM, "mm", (7, 13), (13, 7))) is None


def test_the_users_own_cache_never_stands_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    path.write_bytes(b"this is no cache" * 100)
    own = cache(path, own=True)
    with pytest.warns(tc.CacheWarning, match="the cache of compiled kernels is not used: .*k.db"):
        assert own.find(wanted()) is None
    with pytest.warns(tc.CacheWarning, match="a kernel is not kept: .*k.db"):
        own.keep(wanted(), {}, executable(wanted()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert own.find(wanted()) is None
    with pytest.raises(tc.CacheError, match=r"k\.db"):
        cache(path).find(wanted())
    assert path.read_bytes() == b"this is no cache" * 100


def test_the_users_own_cache_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.db"
    made = [(want, executable(want)) for want in (wanted(MM, "mm", (7, 13), (13, columns)) for columns in range(1, 7))]
    (first, executable_of_first), *others = made
    cache(path, own=True).keep(first, {}, executable_of_first)
    # Room for two kernels beside what every cache has.
    monkeypatch.setattr("tc.store.access._OWN_BYTES", path.stat().st_size + 80_000)
    for other, compiled in others:
        cache(path, own=True).keep(other, {}, compiled)
    assert path.stat().st_size < 2 * 80_000 + 200_000
    assert cache(path, own=True).find(made[-1][0]) is not None
    assert cache(path, own=True).find(first) is None
    named = tmp_path / "named.db"
    for want, compiled in made:
        cache(named).keep(want, {}, compiled)
    assert cache(named).find(first) is not None


def test_an_entry_that_is_for_something_else_never_runs(tmp_path: Path) -> None:
    """A variant whose hash is right, but which lies under the key of another kernel."""
    from tc.cache.content.store import Store
    from tc.store.deposit import deposit

    want, other = wanted(), wanted(MM, "mm", (700, 13), (13, 5))
    deposit(Store.open(tmp_path / "k.db"), other, {}, executable(want), environment(), made="by a test")
    with pytest.raises(tc.CacheError, match=r"holds what tc did not make: .* made for something else"):
        cache(tmp_path / "k.db").find(other)
    sums = "def sums(float(M,K) A) -> (C) { C(m) +=! A(m,r_k) }"
    third = wanted(sums, "sums", (7, 13))
    deposit(Store.open(tmp_path / "k.db"), third, {}, executable(want), environment(), made="by a test")
    with pytest.raises(tc.CacheError, match=r"holds what tc did not make: .* other arguments"):
        cache(tmp_path / "k.db").find(third)


def test_modes_and_keys_of_the_environment(tmp_path: Path) -> None:
    assert configured(Environment(cache_mode="off", cache="k.db")) is None
    assert configured(Environment()) is None
    assert configured(Environment(cache_home=str(tmp_path))) == Configuration(
        str(tmp_path / "tc" / "kernels.db"), Mode.STORE, None, own=True
    )
    assert configured(Environment(cache="k.db")) == Configuration("k.db", Mode.STORE, None, own=False)
    with pytest.raises(tc.OptionsError, match="TC_CACHE_MODE must be one of store, warn, strict, off, got 'fast'"):
        configured(Environment(cache_mode="fast"))
    with pytest.raises(tc.CacheError, match=r"TC_CACHE_MODE=strict needs a cache; name its file in TC_CACHE"):
        configured(Environment(cache_mode="strict"))
    with pytest.raises(tc.CacheError, match=r"TC_CACHE_KEY: cannot read .*: No such file"):
        configured(Environment(cache="k.db", cache_key=str(tmp_path / "none")))
    (tmp_path / "key").write_bytes(b"short\n")
    with pytest.raises(tc.CacheError, match=r"TC_CACHE_KEY: the secret in .* has 5 bytes, needs 16 at least"):
        configured(Environment(cache="k.db", cache_key=str(tmp_path / "key")))


def test_with_a_key_only_what_is_sealed_runs(tmp_path: Path) -> None:
    want = wanted()
    secret = b"0123456789abcdef"
    keep(tmp_path / "open.db", want)
    with pytest.raises(tc.CacheError, match="is not sealed"):
        cache(tmp_path / "open.db", key=secret).find(want)
    cache(tmp_path / "sealed.db", key=secret).keep(want, {}, executable(want))
    assert cache(tmp_path / "sealed.db", key=secret).find(want) is not None
    assert cache(tmp_path / "sealed.db").find(want) is not None
    with pytest.raises(tc.CacheError, match="bears the seal of another key"):
        cache(tmp_path / "sealed.db", key=secret[::-1]).find(want)


# --- processes -------------------------------------------------------------------------------------------------------

CALL = f"""
import sys, numpy as np, tc
a, b = np.ones((7, 13), np.float32), np.ones((13, 5), np.float32)
np.testing.assert_array_equal(tc.define({MM!r}).mm(a, b), np.full((7, 5), 13, np.float32))
print(*sorted(name for name in ("islpy", "lark", "sqlalchemy", "scipy", "subprocess") if name in sys.modules))
"""


def test_a_second_process_neither_parses_nor_compiles(tmp_path: Path) -> None:
    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    assert "islpy" in run(CALL, environment=settings)
    assert "islpy" not in run(CALL, environment=settings)
    assert "lark" not in run(CALL, environment=settings)
    assert MM in CALL
    otherwise = CALL.replace(MM, MM.replace(" ", "   ") + " # as a file has it\\n")
    assert "lark" not in run(otherwise, environment=settings)


def test_without_a_name_the_users_own_cache_keeps_kernels(tmp_path: Path) -> None:
    settings = {"TC_CACHE_MODE": "", "TC_CACHE": "", "XDG_CACHE_HOME": str(tmp_path)}
    run(CALL, environment=settings)
    assert (tmp_path / "tc" / "kernels.db").exists()
    assert "islpy" not in run(CALL, environment=settings)


def test_production_needs_no_compiler_and_a_read_only_file(tmp_path: Path) -> None:
    from tc.cache.content.ship import ship

    keep(tmp_path / "k.db", wanted())
    shipped = tmp_path / "production" / "k.db"
    shipped.parent.mkdir()
    ship(tmp_path / "k.db", shipped)
    shipped.chmod(0o444)
    shipped.parent.chmod(0o555)
    home = tmp_path / "home"
    home.mkdir()
    settings = {
        "TC_CACHE_MODE": "strict",
        "TC_CACHE": str(shipped),
        "PATH": str(home),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "TC_CC": "",
    }
    assert run(CALL, environment=settings).split() in ([], ["subprocess"])
    assert list(home.iterdir()) == []
    manifest = "import tc; print(tc.cache.manifest())"
    hashes = {run(manifest, environment={**settings, "TC_CACHE": path}) for path in (str(shipped), str(shipped))}
    assert len(hashes) == 1
    assert run(manifest, environment={**settings, "TC_CACHE": str(shipped)}).strip() == Reader.open(shipped).manifest()


def test_the_best_kernel_of_this_process_serves_all_of_its_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that another one served before, and whatever the cache has."""
    here = cache(tmp_path / "k.db")
    monkeypatch.setattr("tc.api.kernels.process_cache", lambda: here)
    mm, opened = tc.define(MM).mm, ((tc.dynamic(40), 13), (13, 5))
    default = mm.compile(*opened)
    assert mm.compile((7, 13), (13, 5)) is default
    best = mm.compile(*opened, options=CpuOptions(threads=1))
    own = mm.compile((8, 13), (13, 5), options=CpuOptions(threads=1))
    assert own is best
    mm._kernels.put(best.signature, CPU, best)
    for rows in (7, 23, 40):
        assert mm.compile((rows, 13), (13, 5)) is best
    assert mm.compile((41, 13), (13, 5)).signature.symbolic == ()


def test_what_is_open_is_said(tmp_path: Path) -> None:
    opened = wanted(MM, "mm", (tc.dynamic(40), 13), (13, 5))
    assert str(opened).startswith("mm(A: float32[1..40, 13], B: float32[13, 5]) on cpu")
    kernel = Kernel(executable(opened))
    assert repr(kernel).startswith("<tc.Kernel mm(A[1..40, 13], B[13, 5]) for cpu")
    a, b = np.ones((41, 13), np.float32), np.ones((13, 5), np.float32)
    message = r"is compiled for A: float32\[1\.\.40, 13\], B: float32\[13, 5\], got A: float32\[41, 13\], B: "
    with pytest.raises(tc.ArgumentError, match=message):
        kernel(a, b)
    other = wanted(PICK, "pick", 2.0, (9,), (tc.dynamic(4),))
    ingredients = other.ingredients("cc 12")
    assert extents_of(ingredients) == (("9",), ("1..4",))
    for name, text in (
        ("symbolic", "[[4]]"),
        ("symbolic", "[" * 100_000),
        ("symbolic", '[["4",[2]]]'),
        ("shapes", '["9","4"]'),
        ("shapes", "[[9]"),
        ("strides", '[[1,"contiguous"]]'),
        ("strides", '"x"'),
    ):
        assert extents_of(replace(ingredients, **{name: text})) is None


def test_kernels_name_what_they_need() -> None:
    made = executable(wanted("def f(float(N) x) -> (y) { y(i) = sin(x(i)) }", "f", (100,)))
    needed = required_libc(made.binary.code)
    assert re.fullmatch(r"glibc 2\.\d+", needed) or not needed
    check_libc(needed)
    check_libc("")
    with pytest.raises(tc.DeviceError, match=r"a compiled kernel needs glibc 99\.1, and this system has "):
        check_libc("glibc 99.1")
    with pytest.raises(tc.DeviceError, match=r"a compiled kernel needs musl 1.2, and this system has"):
        check_libc("musl 1.2")


def test_an_explanation_says_what_the_cache_has(tmp_path: Path) -> None:
    program = f"""
import tc
mm = tc.define({MM!r}).mm
text = mm.explain((7, 13), (13, 5))
print(text.partition("== cache ==")[2].partition("== source ==")[0])
"""
    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    run(program, environment=settings)
    found = run(program, environment=settings)
    assert "k.db (store)\nfound: options {" in found
    assert "compiled when it was called" in found


# --- what was measured -----------------------------------------------------------------------------------------------


def test_seconds_of_a_kernel_are_known_when_it_was_measured(tmp_path: Path) -> None:
    path, want = tmp_path / "kernels.db", wanted()
    assert cache(path).times([want]) == [{}]
    assert cache(path).measured_shapes(CPU) == frozenset()
    keep(path, want)
    assert cache(path).times([want]) == [{}]
    assert cache(path).measured_shapes(CPU) == frozenset()
    measure(path, "mm", 0.25)
    assert cache(path).times([want]) == [{(want.machine, want.threads): (0.25, 0.625)}]
    assert cache(path).measured_shapes(CPU) == {shapes_text([(7, 13), (13, 5)])}
    assert cache(path, Mode.STRICT).times([want]) == [{(want.machine, want.threads): (0.25, 0.625)}]
    other = replace(want, signature=wanted(MM, None, (8, 13), (13, 5)).signature)
    assert list(map(len, cache(path).times([other, want]))) == [0, 1]
