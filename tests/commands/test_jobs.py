"""What a person may ask ``tc-tune`` for, and what it says to the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tc
from tc.base.errors import OptionsError
from tc.commands.jobs import Job, parse_sizes, read_job_file, read_text
from tc.commands.tune import main
from tc.dispatch.arguments import bind_specs
from tc.language.program.specialization import Dynamic, SymbolicSize

TEXT = """
def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
def shift(float(N) x, int32 s, double t) -> (y) { y(i) = x(i + s) * t where i in 0:4 }
def add(float(M,N) x, int32 s, float(M,N) y) -> (z) { z(i) = x(i,0) + y(i,s) }
"""


def job_file(folder: Path, kernels: str) -> Path:
    """A file beside the definitions ``k.tc``."""
    (folder / "k.tc").write_text(TEXT)
    path = folder / "jobs.toml"
    path.write_text(kernels)
    return path


def jobs(path: Path) -> list[Job]:
    return [job for request in read_job_file(path).requests for job in request.jobs()]


def test_a_job_file_is_every_definition_at_every_size_and_type(tmp_path: Path) -> None:
    path = job_file(
        tmp_path,
        """
budget = "8h"
seed = 7
[[kernel]]
file = "k.tc"
definition = "mm"
sizes = [{M = 2, K = 3, N = 4}, {M = 5, K = 6, N = 7}]
dtypes = ["float32", "float64"]
[[kernel]]
file = "k.tc"
definition = ["shift"]
sizes = {N = 9, s = 2}
[[kernel]]
text = "def one(float(3) x) -> (y) { y(i) = x(i) }"
""",
    )
    assert read_job_file(path).settings == {"budget": "8h", "seed": "7"}
    found = jobs(path)
    assert list(map(str, found)) == [
        "mm(M=2,K=3,N=4,float32)",
        "mm(M=5,K=6,N=7,float32)",
        "mm(M=2,K=3,N=4,float64)",
        "mm(M=5,K=6,N=7,float64)",
        "shift(N=9,s=2)",
        "one()",
    ]
    types = [str(spec.dtype) for job in found for _, spec in job.subject.signature.arguments]
    assert types == ["float32"] * 4 + ["float64"] * 4 + ["float32"] * 2
    shift, one = found[-2:]
    assert shift.subject.signature.scalars == (("s", 2),)
    assert shift.subject.scalars == {"s": 2, "t": 1}
    assert [spec.shape for _, spec in one.subject.signature.arguments] == [(3,)]
    assert list(shift.subject.siblings) == ["mm", "shift", "add"]


def test_sizes_may_stay_open(tmp_path: Path) -> None:
    path = job_file(
        tmp_path,
        """
[[kernel]]
file = "k.tc"
definition = "mm"
sizes = [{M = "..100", K = 3, N = 4}, {M = "..7", K = "..3", N = 4}]
[[kernel]]
file = "k.tc"
definition = "add"
sizes = {s = 2, M = "..9", N = 5}
""",
    )
    found = jobs(path)
    assert list(map(str, found)) == ["mm(M=..100,K=3,N=4)", "mm(M=..7,K=..3,N=4)", "add(s=2,M=..9,N=5)"]
    text = tc.define(TEXT)
    assert found[0].subject.signature == bind_specs(text.mm.interface, ((tc.dynamic(100), 3), (3, 4)))
    assert found[0].subject.signature.symbolic == (SymbolicSize(100, (("A", 0),)),)
    both = (SymbolicSize(7, (("A", 0),)), SymbolicSize(3, (("A", 1), ("B", 0))))
    assert found[1].subject.signature.symbolic == both
    assert found[2].subject.signature == bind_specs(text.add.interface, ((9, 5), 2, (tc.dynamic(9), 5)))
    assert found[2].subject.signature.symbolic == (SymbolicSize(9, (("x", 0), ("y", 0))),)
    assert found[2].subject.signature.scalars == (("s", 2),)


KERNEL = '[[kernel]]\nfile = "k.tc"\ndefinition = "mm"\nsizes = {M = 2, K = 3, N = 4}\n'

SIZES = (
    '{path}: kernel 1: sizes must be tables of integers, such as {{M = 128, N = 64}}, where M = "..128" stays open '
    "from 1 to 128"
)
NO_KERNELS = (
    "{path} names no kernels; write a table [[kernel]] with file, definition and sizes for each, or a table [[model]] "
    "with file, and sizes or shapes"
)
WRONG = {
    "budget = '1h'": NO_KERNELS,
    "kernel = 'mm'": NO_KERNELS,
    "kernel = [1]": "{path}: kernel 1 must be a table, got 1",
    "= 1": "{path} is no TOML: Invalid statement (at line 1, column 1)",
    KERNEL.replace("[[kernel]]", "[[kernels]]"): "{path} has an unknown setting 'kernels'; did you mean 'kernel'?",
    KERNEL.replace('"mm"', '"mn"'): "{path}: kernel 1 defines no 'mn'; did you mean 'mm'?",
    f"buget = '1h'\n{KERNEL}": "{path} has an unknown setting 'buget'; did you mean 'budget'?",
    f"{KERNEL}x = 1": "{path}: kernel 1 has an unknown setting 'x'; known: file, text, definition, sizes, dtypes, "
    "gradient",
    f"{KERNEL}text = ''": "{path}: kernel 1 needs either file or text",
    f"{KERNEL}[[kernel]]\nsizes = {{}}": "{path}: kernel 2 needs either file or text",
    "[[kernel]]\nfile = 'none.tc'": "cannot read {folder}/none.tc: No such file or directory",
    KERNEL.replace('"mm"', '"shfit"'): "{path}: kernel 1 defines no 'shfit'; did you mean 'shift'?",
    KERNEL.replace('"mm"', '"xyz"'): "{path}: kernel 1 defines no 'xyz'; defined: mm, shift, add",
    KERNEL.replace('"mm"', "5"): "{path}: kernel 1: definition must be a name or a list of names, got 5",
    f"{KERNEL}dtypes = [1]": "{path}: kernel 1: dtypes must be a name or a list of names, got [1]",
    f"{KERNEL}dtypes = 'float'": (
        "{path}: kernel 1: dtypes must be among float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, "
        "got 'float'"
    ),
    KERNEL.replace("K = 3, ", ""): "{path}: kernel 1: mm needs the sizes M, K, N; missing: K",
    KERNEL.replace("K = 3", "K = 3, L = 1"): "{path}: kernel 1: mm has no size L; it has M, K, N",
    KERNEL.replace("K = 3", "K = 3.0"): f"{SIZES}, got {{{{'M': 2, 'K': 3.0, 'N': 4}}}}",
    KERNEL.replace("{M = 2, K = 3, N = 4}", "7"): f"{SIZES}, got 7",
    KERNEL.replace("M = 2", "M = '..0'"): f"{SIZES}, got {{{{'M': '..0', 'K': 3, 'N': 4}}}}",
    KERNEL.replace("M = 2", "M = '..'"): f"{SIZES}, got {{{{'M': '..', 'K': 3, 'N': 4}}}}",
    KERNEL.replace("M = 2", "M = '2'"): f"{SIZES}, got {{{{'M': '2', 'K': 3, 'N': 4}}}}",
    KERNEL.replace("M = 2", "M = true"): f"{SIZES}, got {{{{'M': True, 'K': 3, 'N': 4}}}}",
    KERNEL.replace('"mm"', '"shift"').replace("M = 2, K = 3, N = 4", 'N = 9, s = "..2"'): (
        "{path}: kernel 1: shift takes a number as s; only sizes can stay open"
    ),
    KERNEL.replace('"mm"', '"shift"').replace("M = 2, K = 3, N = 4", 'N = 9, s = 2, t = "..2"'): (
        "{path}: kernel 1: shift takes a number as t; only sizes can stay open"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_a_job_file_cannot_be(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    path = job_file(tmp_path, text)
    assert main([str(path), "--cache", str(tmp_path / "t.db")]) == 2
    assert capsys.readouterr().err == f"tc-tune: {WRONG[text].format(path=path, folder=tmp_path)}\n"
    assert not (tmp_path / "t.db").exists()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    noise = tmp_path / "noise.tc"
    noise.write_bytes(b"\xff\xfe")
    with pytest.raises(OptionsError, match=r"noise\.tc is no text: 'utf-8' codec can't decode byte 0xff"):
        read_text(noise)
    with pytest.raises(OptionsError, match=r"none\.toml: No such file or directory"):
        read_job_file(tmp_path / "none.toml")


def test_sizes_on_the_command_line() -> None:
    assert parse_sizes("M=1024, K = 512") == {"M": 1024, "K": 512}
    opened = parse_sizes("M = ..1024,K=512")
    assert opened == {"M": 1024, "K": 512}
    assert [isinstance(size, Dynamic) for size in opened.values()] == [True, False]
    wrong = ("", "M", "M=", "M=-1", "M=1.5", "M=1,", "M=\u00b2", "M=\u0663", "M=" + "9" * 5000)
    for text in (*wrong, "M=..", "M=..0", "M=.. 5", "M=..-1", "M=1..5", "M=...5", "M=..\u0663", "M=.." + "9" * 5000):
        message = "sizes are written as M=1024,K=512, where M=..1024 stays open from 1 to 1024, got "
        with pytest.raises(OptionsError, match=f"^{re.escape(message + repr(text))}$"):
            parse_sizes(text)


def test_forwards_and_gradients_are_jobs(tmp_path: Path) -> None:
    path = job_file(
        tmp_path,
        """
[[kernel]]
text = "def conv(float(W) I, float(K) k) -> (O) { O(w) +=! I(w + i) * k(i) }"
gradient = "all"
sizes = [{W = 16, K = 3}, {W = "..16", K = 3}]
[[kernel]]
file = "k.tc"
definition = "mm"
gradient = ["B"]
sizes = {M = 2, K = 3, N = 4}
[[kernel]]
text = "def f(float(N,D) x) -> (y) { s(n) +=! x(n,d)  y(n,d) = x(n,d) / s(n) }"
gradient = ["x"]
sizes = {N = 2, D = 3}
""",
    )
    found = jobs(path)
    assert list(map(str, found)) == [
        "conv(W=16,K=3)",
        "conv_backward(W=16,K=3,O0=14)",
        "conv(W=..16,K=3)",
        "conv_backward(W=..16,K=3,O0=..14)",
        "mm(M=2,K=3,N=4)",
        "mm_backward(M=2,K=3,N=4)",
        "f_forward(N=2,D=3)",
        "f_backward(N=2,D=3)",
    ]
    pair = tc.define(TEXT)["mm"].with_gradient("B")
    assert found[5].subject.definition.program == pair.backward.program


def test_gradients_are_asked_for_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.tc").write_text("def f(float(N,D) x) -> (y) { s(n) +=! x(n,d)  y(n,d) = x(n,d) / s(n) }")
    command = [str(tmp_path / "k.tc"), "--size", "N=2,D=3", "--cache", str(tmp_path / "t.db"), "--budget", "1 trial"]
    assert main([*command, "--gradient", "x", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["f_forward(N=2,D=3)", "f_backward(N=2,D=3)"]
    assert main([*command, "--gradient", "z"]) == 2
    assert "`z` is no argument of `f` with a gradient: its floating tensors are x" in capsys.readouterr().err
    assert main([*command, "--gradient", "x,"]) == 2
    assert "arguments are written as A,B, got 'x,'" in capsys.readouterr().err
