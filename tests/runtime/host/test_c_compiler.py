"""The C compiler: found or missed with a remedy, quoted when it refuses, stopped when it hangs."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tc.base.environment import Environment, environment
from tc.base.errors import CompileError, DeviceError
from tc.runtime.host.c_compiler import Compiler, check_compiles, compile_shared, compiling, find_compiler, kernel_flags
from tc.runtime.host.library import load_library
from tc.targets.target import CpuTarget, parse_cpu_target, processor
from tests.waiting import is_running, wait_until

FLAGS = kernel_flags(parse_cpu_target("cpu"), find_compiler(environment()))
ANSWER = "int answer(void) { return ANSWER; }"


def script(folder: Path, text: str) -> Compiler:
    """A stand-in for a compiler."""
    file = folder / "cc"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o700)
    return Compiler((str(file),), "a test's")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_named_compiler_is_used_with_its_arguments() -> None:
    found = find_compiler(environment())
    named = find_compiler(Environment(compiler=f"{found.command[0]} -DANSWER=42"))
    assert named.command == (found.command[0], "-DANSWER=42")
    assert named.identity != found.identity
    flags = kernel_flags(parse_cpu_target("cpu"), named)
    assert load_library(compile_shared(ANSWER, flags, named)).answer() == 42


@pytest.mark.parametrize("command", ["/nowhere/cc", "no-such-compiler -O3", "'", " "])
def test_a_compiler_that_is_not_there(command: str) -> None:
    with pytest.raises(DeviceError, match="TC_CC"):
        find_compiler(Environment(compiler=command))


def test_no_compiler_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match=r"none of cc, gcc, clang is on the PATH; install one .*apt install gcc"):
        find_compiler(Environment())


def test_the_identity_follows_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    script(tmp_path, "exit 0")
    before = find_compiler(Environment())
    assert find_compiler(Environment()) == before
    script(tmp_path, "exit 1")
    os.utime(tmp_path / "cc", ns=(1, 1))
    assert find_compiler(Environment()).identity != before.identity


def test_a_compiler_for_another_machine_is_refused_with_a_remedy(tmp_path: Path) -> None:
    here, there = CpuTarget("x86-64-v3"), CpuTarget("armv8-a")
    if processor().machine == there.machine:
        here, there = there, here
    compiler = find_compiler(environment())
    check_compiles(here, compiler)
    cross = f"{there.machine}-linux-gnu"
    message = (
        f"target '{there}' needs a C compiler for {there.machine}, and {compiler.command[0]} makes code for "
        rf"{here.machine}-[-\w]+; name a cross compiler in TC_CC, as in TC_CC={cross}-gcc "
        rf"\(Debian and Ubuntu: apt install gcc-{cross.replace('_', '-')}\)"
    )
    with pytest.raises(DeviceError, match=f"^{message}$"):
        check_compiles(there, compiler)
    other = script(tmp_path, f"echo {'arm64' if there.machine == 'aarch64' else 'amd64'}-unknown-linux-gnu")
    check_compiles(there, other)
    with pytest.raises(
        DeviceError, match=r"-unknown-linux-gnu; unset TC_CC, or name a compiler for this machine in it$"
    ):
        check_compiles(here, other)


@pytest.mark.parametrize("answer", ["exit 0", "echo unknown option -dumpmachine; exit 1", "echo what do you mean"])
def test_a_compiler_that_does_not_name_its_machine_is_trusted(answer: str, tmp_path: Path) -> None:
    compiler = replace(script(tmp_path, answer), identity=answer)
    for target in (CpuTarget("x86-64"), CpuTarget("armv8-a")):
        check_compiles(target, compiler)


def test_nothing_stays_on_disk(temporary: Path) -> None:
    binary = compile_shared("int one(void) { return 1; }", FLAGS, find_compiler(environment()))
    assert load_library(binary).one() == 1
    assert list(temporary.iterdir()) == []


def test_an_error_holds_the_log_and_the_place_of_the_source(temporary: Path) -> None:
    source = "int broken(void) { return nonsense; }\n"
    with pytest.raises(CompileError) as caught:
        compile_shared(source, FLAGS, find_compiler(environment()))
    message = str(caught.value)
    assert "exit status 1" in message
    assert "nonsense" in message
    place = re.search(r"source kept in: (.*)", message)
    assert place is not None
    assert Path(place[1]).read_text(encoding="utf-8") == source
    assert f"{place[1]}:1:" in message
    assert [path.name for path in temporary.iterdir()] == [Path(place[1]).parent.name]


def _hanging(folder: Path) -> tuple[Compiler, Callable[[], list[int]]]:
    """A compiler that never ends, nor does its child; and the numbers of both, once they are at work."""
    numbers = folder / "numbers"
    hanging = script(folder, f"sleep 100000 & echo working; printf '%s\\n%s\\n' $$ $! >> {numbers}; wait")
    return hanging, lambda: list(map(int, numbers.read_text().split())) if numbers.exists() else []


def test_a_hanging_compiler_is_stopped_with_its_children(temporary: Path, tmp_path: Path) -> None:
    hanging, started = _hanging(tmp_path)
    with compiling("", (), hanging, timeout=0.01) as library:
        wait_until(lambda: len(started()) == 2)
        with pytest.raises(CompileError, match=r"gave up after 0\.01 s[\s\S]*working"):
            library()
    wait_until(lambda: not any(map(is_running, started())))


def test_a_compiler_that_is_not_awaited_is_stopped_with_its_children(temporary: Path, tmp_path: Path) -> None:
    hanging, started = _hanging(tmp_path)
    with compiling("", (), hanging):
        wait_until(lambda: len(started()) == 2)

    def fail() -> None:
        with compiling("", (), hanging):
            wait_until(lambda: len(started()) == 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    wait_until(lambda: not any(map(is_running, started())))
    assert list(temporary.iterdir()) == []


def test_a_compiler_works_before_it_is_awaited() -> None:
    compiler = find_compiler(environment())
    with (
        compiling(ANSWER, (*FLAGS, "-DANSWER=1"), compiler) as one,
        compiling(ANSWER, (*FLAGS, "-DANSWER=42"), compiler) as other,
    ):
        assert load_library(other()).answer() == 42
        assert load_library(one()).answer() == 1


def test_a_compiler_that_makes_nothing_or_cannot_start(temporary: Path, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"exit status 0[\s\S]*no output"):
        compile_shared("", (), script(tmp_path, "exit 0"))
    with pytest.raises(DeviceError, match="cannot be started: No such file or directory; install one"):
        compile_shared("", (), Compiler((str(tmp_path / "gone"),), "gone"))


def test_flags_never_ask_for_fast_math() -> None:
    assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only"} & set(FLAGS)


def test_many_threads_compile_at_once() -> None:
    compiler = find_compiler(environment())

    def answer(number: int) -> int:
        return int(load_library(compile_shared(ANSWER, (*FLAGS, f"-DANSWER={number}"), compiler)).answer())

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(answer, range(8))) == list(range(8))


def test_a_library_that_cannot_be_loaded() -> None:
    with pytest.raises(DeviceError, match=r"a compiled library cannot be loaded: .*TMPDIR"):
        load_library(b"not a library")


def test_no_place_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(DeviceError, match=r"no place for temporary files: .*; name a writable folder in TMPDIR"):
        compile_shared("", (), find_compiler(environment()))


def test_a_compiler_is_given_only_flags_that_it_knows(tmp_path: Path) -> None:
    gcc = find_compiler(environment())
    refusing = script(tmp_path, f'case "$*" in *-fno-predictive*) exit 1;; esac\nexec {gcc.command[0]} "$@"')
    flags = kernel_flags(parse_cpu_target("cpu"), refusing)
    assert set(FLAGS) - set(flags) == {"-fno-predictive-commoning"}
    assert load_library(compile_shared("int one(void) { return 1; }", flags, refusing)).one() == 1


@pytest.mark.parametrize("step", [64, 4096])
def test_what_lies_between_lanes_is_not_read(step: int) -> None:
    """Of a sum of 11 columns in lanes that are a power of two apart, GCC 12 made twenty thousand instructions."""
    text = f"""
void add(float *restrict s, const float *restrict x) {{
  for (long k = 0; k < 11; k++) {{
    #pragma omp simd
    for (long lane = 0; lane < 32; lane++) s[5 * lane] += x[{step} * lane + k];
  }}
}}"""
    compiler = find_compiler(environment())
    sizes = [
        len(compile_shared(own, kernel_flags(parse_cpu_target("cpu"), compiler), compiler))
        for own in (text, text.replace(f"{step} *", "4097 *"))
    ]
    assert sizes[0] < sizes[1] + (1 << 12)


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_clang_takes_the_flags_that_it_is_given() -> None:
    clang = find_compiler(Environment(compiler="clang"))
    flags = (*kernel_flags(parse_cpu_target("cpu"), clang), "-Werror")
    binary = compile_shared("int one(void) { return 1; }", flags, clang)
    assert load_library(binary).one() == 1
