"""``tc-cache export``: files for production, and folders that C programs compile."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tc.base.types import ScalarType
from tc.cache.content.integrity import verify
from tc.cache.content.store import Store
from tc.commands.cache import main
from tc.commands.contents.listing import Filter
from tc.commands.export.selection import select
from tc.export.sizes import extents_said
from tc.language.program.extent import Choice, Extent, Term
from tc.language.program.specialization import Layout
from tests.commands.caches import MM, add_variant, contents, summary
from tests.programs import run
from tests.waiting import PATIENCE

PROGRAM = Path(__file__).with_name("program.c")
OPEN_PROGRAM = Path(__file__).with_name("open_sizes.c")
STRICT = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror")


def exported(capsys: pytest.CaptureFixture[str], cache: Path, folder: Path, *arguments: str) -> list[str]:
    """The files of the kernels that are exported."""
    assert main(["export", str(cache), "--sources", str(folder), *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    *names, last = printed.out.splitlines()
    assert last == f"in {folder}: {len(names)} kernel{'s' if len(names) > 1 else ''}; see README.txt"
    assert all((folder / name).is_file() for name in names)
    return names


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["export", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    return line


def shell(*arguments: str | Path, folder: Path) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compile_for(cache: Path, target: str) -> None:
    """Adds a kernel that is compiled for a target."""
    program = f"import tc; tc.define({MM!r}).mm.compile((7, 13), (13, 5), target={target!r})"
    run(program, environment={"TC_CACHE": str(cache), "TC_CACHE_MODE": "store"})


# --- programs without Python -----------------------------------------------------------------------------------------


def test_a_program_in_c_calls_exported_kernels(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    names = exported(capsys, cache, folder)
    assert names == ["kernel_mm_96x300_300x200.c", "kernel_pick_9_3_float64_int32.c"]
    shell("make", folder=folder)
    shutil.copy(PROGRAM, folder)
    shell("cc", *STRICT, "-fsyntax-only", "program.c", "kernels.c", "call_plain.c", "call_threads.c", folder=folder)
    for library, threads in (("libkernels.a", ()), ("libkernels_threads.a", ("-pthread",))):
        shell("cc", "-O1", "program.c", "-I.", library, "-lm", *threads, "-o", "program", folder=folder)
        assert shell("./program", "2", folder=folder) == "right\n"


def test_the_readme_holds_a_program(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    exported(capsys, cache, folder, "--program", "pick")
    run_the_readme(folder)


def run_the_readme(folder: Path) -> None:
    """Compiles and runs the program in the README of an exported folder as it says."""
    lines = (folder / "README.txt").read_text().splitlines()
    start = lines.index('    #include "kernels.h"')
    (folder / "example.c").write_text("\n".join(lines[start : lines.index("    }", start) + 1]))
    commands = [line.partition("#")[0].split() for line in lines if line.startswith(("    make ", "    cc "))]
    assert len(commands) == 3
    for command in commands:
        shell(*(word.replace("program.c", "example.c") for word in command), folder=folder)
        if command[0] == "cc":
            shell("./a.out", folder=folder)


def test_the_header_says_how_to_call(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    exported(capsys, cache, folder)
    text = (folder / "kernels.h").read_text()
    for line in (
        "// mm(A, B) -> (C): kernel_mm_96x300_300x200.c",
        "//     def f(float32(n0, n1) t0, float32(n1, n2) t1) -> (t2) {",
        "//   buffers[0]  A: float32[96][300], read",
        "//   buffers[2]  C: float32[96][200], written",
        "//   scalars[0].d  s: float64",
        "//   buffers[3]  total: float64, written",
        "//   fault 1: an index into dimension 0 of X is outside of 0:9",
        "//   was never measured",
    ):
        assert f"\n{line}\n" in text
    assert re.search(r"//   takes 1.5 ms \(1.35 ms to 1.8 ms\), 2.50x the default, on \d+ threads? of ", text)
    assert re.search(r"//   needs 0 B for temporaries, and [\d.]+ KiB for every thread", text)
    assert re.search(r"//   for cpu:\S+ with options: the defaults", text)
    if shutil.which("c++"):
        program = '#include "kernels.h"\nint main() { return tc_kernel_count == 2 ? 0 : 1; }\n'
        (folder / "program.cc").write_text(program)
        shell("c++", "-fsyntax-only", "program.cc", folder=folder)


def test_kernels_of_one_name_are_told_apart(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    mm = summary(cache, "mm")
    other = add_variant(cache, replace(mm.ingredients, compiler="another one"), mm.variants[0])
    names = exported(capsys, cache, tmp_path / "kernels", "--program", "mm")
    keys = (mm.ingredients.key, other.kernel)
    assert names == sorted(f"kernel_mm_96x300_300x200_{key[:8]}.c" for key in keys)
    shell("make", "libkernels.a", folder=tmp_path / "kernels")


# --- sizes that stay open --------------------------------------------------------------------------------------------

OPEN = """
def differences(float(N,K) x, float s) -> (y) { y(i,k) = (x(i + 1,k) - x(i,k)) * s }
def total(float(N,K) x, float(M,K) y) -> (z) {
    z(k) +=! x(r,k)
    z(k) += y(r,k)
}
def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with kernels for all sizes up to some."""
    path = tmp_path_factory.mktemp("open") / "kernels.db"
    program = f"""
import tc
text = tc.define({OPEN!r})
text.differences.compile((tc.dynamic(96), 7), 0.5)
text.total.compile((tc.dynamic(96), 7), (tc.dynamic(9), 7))
text.product.compile((tc.dynamic(20), tc.dynamic(30)), (tc.dynamic(30), tc.dynamic(40)))
"""
    run(program, environment={"TC_CACHE": str(path), "TC_CACHE_MODE": "store"})
    return path


def test_a_program_in_c_passes_the_sizes(capsys: pytest.CaptureFixture[str], opened: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    names = exported(capsys, opened, folder)
    product = "kernel_product_1to20x1to30_1to30x1to40.c"
    assert names == ["kernel_differences_1to96x7.c", product, "kernel_total_1to96x7_1to9x7.c"]
    shell("make", folder=folder)
    shutil.copy(OPEN_PROGRAM, folder)
    sources = ("kernels.c", "call_plain.c", "call_threads.c")
    shell("cc", *STRICT, "-fsyntax-only", OPEN_PROGRAM.name, *sources, folder=folder)
    for library, threads in (("libkernels.a", ()), ("libkernels_threads.a", ("-pthread",))):
        shell("cc", "-O1", OPEN_PROGRAM.name, "-I.", library, "-lm", *threads, "-o", "program", folder=folder)
        assert shell("./program", folder=folder) == "right\n"


def test_the_header_says_which_sizes_are_passed(
    capsys: pytest.CaptureFixture[str], opened: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kernels"
    exported(capsys, opened, folder)
    text = (folder / "kernels.h").read_text()
    for line in (
        "//   buffers[0]  x: float32[x.0][7], read",
        "//   buffers[1]  y: float32[x.0 - 1][7], written",
        "//   scalars[0].f  s: float32",
        "//   scalars[1].i  x.0: dimension 0 of x, from 1 to 96",
        "//   buffers[1]  y: float32[y.0][7], read",
        "//   scalars[0].i  x.0: dimension 0 of x, from 1 to 96",
        "//   scalars[1].i  y.0: dimension 0 of y, from 1 to 9",
        "//   buffers[1]  B: float32[A.1][B.1], read",
        "//   buffers[2]  C: float32[A.0][B.1], written",
        "//   scalars[1].i  A.1: dimension 1 of A and dimension 0 of B, from 1 to 30",
        "//   scalars[2].i  B.1: dimension 1 of B, from 1 to 40",
    ):
        assert f"\n{line}\n" in text
    assert (
        '.scalars = (const tc_parameter[]){{"s", "float32"}, {"x.0", "int64"}},' in (folder / "kernels.c").read_text()
    )


def test_the_program_of_the_readme_passes_the_greatest_sizes(
    capsys: pytest.CaptureFixture[str], opened: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kernels"
    exported(capsys, opened, folder)
    assert "\n      tc_scalar scalars[] = {{0}, {.i = 96}};\n" in (folder / "README.txt").read_text()
    run_the_readme(folder)


FOUR = Extent(4, (0, 0))


@pytest.mark.parametrize(
    ("extent", "said"),
    [
        (None, "[9][7]"),
        (Extent(0, (1, 0)), "[x.0][7]"),
        (Extent(-2, (1, 1)), "[x.0 + y.0 - 2][7]"),
        (Extent(9, (-1, 3)), "[-1 * x.0 + 3 * y.0 + 9][7]"),
        (Extent(1, (1, -2)), "[x.0 - 2 * y.0 + 1][7]"),
        (Extent(0, (1, 0), 1, (Term(-1, Choice.LEAST, (Extent(0, (1, 0), 3),)),)), "[x.0 - (x.0 / 3)][7]"),
        (
            Extent(0, (0, 0), 2, (Term(1, Choice.LEAST, (Extent(4, (0, 0)), Extent(0, (1, 0)))),)),
            "[min(4, x.0) / 2][7]",
        ),
        (Extent(0, (0, 0)), "[0][7]"),
        (Extent(1, (1, 0), 2), "[(x.0 + 1) / 2][7]"),
    ],
)
def test_extents_are_said_in_terms_of_sizes(opened: Path, extent: Extent | None, said: str) -> None:
    with contents(opened) as found:
        (total,) = select(found, Filter(program="total")).exported
    layout = Layout(ScalarType.FLOAT32, (9, 7), (7, 1), (extent, None))
    assert "".join(f"[{extent}]" for extent in extents_said(total, layout)) == said


# --- GPUs ------------------------------------------------------------------------------------------------------------


def test_cuda_kernels_compile_under_their_new_names(
    capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    from tc.runtime.cuda.nvrtc import compile_cuda

    compile_for(cache, "cuda:sm_90")
    folder = tmp_path / "kernels"
    (name,) = exported(capsys, cache, folder, "--target", "cuda:sm_90")
    assert name == "kernel_mm_7x13_13x5_cuda_sm_90.cu"
    binary = compile_cuda((folder / name).read_text(), "sm_90")
    assert set(binary.kernels) == {"kernel_mm_7x13_13x5_cuda_sm_90_0"}
    table = (folder / "kernels.c").read_text()
    arguments = "(const tc_argument[]){{TC_BUFFER, 0}, {TC_BUFFER, 1}, {TC_BUFFER, 2}}"
    grids = rf'{{"kernel_mm_7x13_13x5_cuda_sm_90_0", {{1, 1, 1}}, {{5, 7, 1}}, 768, 3, {arguments}}}'
    assert f".grids = (const tc_grid[]){{{grids}}}," in table
    assert ".entry = NULL," in table
    assert "--gpu-architecture=sm_90 --std=c++20" in table
    header = (folder / "kernels.h").read_text()
    assert "//   needs 0 B for temporaries, and 768 B for every block\n" in header
    assert "void kernel_mm" not in header
    shell("make", folder=folder)
    shell("cc", *STRICT, "-fsyntax-only", "kernels.c", folder=folder)


def test_kernels_that_steps_launch_are_launched_for_each(
    capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    text = "def f(float(N,N) W) -> (D) { D(i,j) = W(i,j) for k in 0:N { D(i,j) min= D(i,k) + D(k,j) } }"
    program = f"import tc; tc.define({text!r}).f.compile((129, 129), target='cuda:sm_90')"
    run(program, environment={"TC_CACHE": str(cache), "TC_CACHE_MODE": "store"})
    folder = tmp_path / "kernels"
    exported(capsys, cache, folder, "--target", "cuda:sm_90")
    table = (folder / "kernels.c").read_text()
    grids = int(re.findall(r"\.grid_count = (\d+),", table)[0])
    assert (grids - 1) % 129 == 0
    # Those that read a row or a column are told which one.
    steps = [int(step) for step in re.findall(r"\{TC_STEP, (\d+)\}", table)]
    assert steps == sorted([*range(129)] * (len(steps) // 129)) != []
    shell("cc", *STRICT, "-fsyntax-only", "kernels.c", folder=folder)


def test_the_emulator_is_exported_as_c(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    compile_for(cache, "emulator")
    folder = tmp_path / "kernels"
    assert exported(capsys, cache, folder, "--target", "emulator") == ["kernel_mm_7x13_13x5_emulator.c"]
    shell("make", folder=folder)
    assert "fault -1: no memory; -2, -3: a mistake of the compiler" in (folder / "kernels.h").read_text()


def test_kernels_of_other_machines_make_no_program(
    capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path
) -> None:
    (variant,) = summary(cache, "mm").variants
    there = "cpu:armv8-a" if "x86" in variant.executable else "cpu:x86-64"
    here = re.search(r'"target":"(cpu:[^"]*)"', variant.executable)
    assert here is not None
    other = replace(variant, executable=variant.executable.replace(here[1], there))
    ingredients = replace(summary(cache, "mm").ingredients, architecture=there.removeprefix("cpu:"))
    add_variant(cache, ingredients, other)
    assert refused(capsys, cache, "--sources", tmp_path / "kernels") == (
        "tc-cache: kernels for aarch64 and x86_64 make no program together; choose one with --target"
    )
    assert len(exported(capsys, cache, tmp_path / "kernels", "--target", there)) == 1


# --- what cannot be exported -----------------------------------------------------------------------------------------


def test_folders_are_new(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    exported(capsys, cache, folder)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in (folder, cache, tmp_path / "link"):
        assert refused(capsys, cache, "--sources", taken) == (
            f"tc-cache: {taken} is there already, and not an empty folder; name a new one"
        )
    assert refused(capsys, cache, "--sources", cache / "kernels") == (
        f"tc-cache: {cache}/kernels cannot be used: Not a directory; check the path and its permissions"
    )


def test_there_must_be_something_to_export(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    assert refused(capsys, cache, "--sources", folder, "--program", "nothing") == (
        f"tc-cache: {cache} has no kernel to export; tune one, or ask for another target or program"
    )
    assert not folder.exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kernels.db"]


def test_kernels_without_a_winner_are_left_out(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    mm = summary(cache, "mm")
    tried = replace(mm.ingredients, shapes="[[1,1],[1,1]]")
    Store.open(cache).add_kernel(tried)
    strange = replace(mm.ingredients, shapes="[[2,2],[2,2]]")
    add_variant(cache, strange, replace(mm.variants[0], options='{"threads":1}'))
    assert main(["export", str(cache), "--sources", str(tmp_path / "kernels")]) == 0
    assert set(capsys.readouterr().err.splitlines()) == {
        f"left out {tried.key[:12]}: it was only tried, and nothing of it was kept",
        f"left out {strange.key[:12]}: of its 1 variant none was measured, and none has the default options",
    }


# --- files for production --------------------------------------------------------------------------------------------


def test_a_shipped_file_serves_in_strict_mode(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    key, shipped = tmp_path / "key", tmp_path / "production" / "k.db"
    key.write_bytes(b"k" * 32)
    shipped.parent.mkdir()
    assert main(["export", str(cache), "--ship", str(shipped), "--seal", str(key)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"wrote {shipped}; use it with TC_CACHE={shipped} TC_CACHE_MODE=strict\n"
    assert printed.err == ""
    assert verify(shipped, key=b"k" * 32) == ()
    assert stat.S_IMODE(shipped.stat().st_mode) == 0o644
    assert [file.name for file in shipped.parent.iterdir()] == ["k.db"]
    program = f"""
import numpy as np, tc
print(tc.define({MM!r}).mm(np.ones((96, 300), "f"), np.ones((300, 200), "f"))[0, 0])
"""
    settings = {"TC_CACHE": str(shipped), "TC_CACHE_MODE": "strict", "TC_CACHE_KEY": str(key), "PATH": str(tmp_path)}
    assert run(program, environment=settings) == "300.0\n"


def test_options_of_exports_that_do_not_fit(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    assert refused(capsys, cache, "--ship", tmp_path / "k.db", "--target", "cpu") == (
        "tc-cache: a shipped file has all kernels; --target and --program choose among --sources"
    )
    assert refused(capsys, cache, "--sources", tmp_path / "kernels", "--seal", "key") == (
        "tc-cache: only a shipped file is sealed; use --seal with --ship"
    )
    assert refused(capsys, cache, "--ship", cache) == (
        f"tc-cache: {cache} cannot be shipped in its own place, where trials would be lost; name another file"
    )
    assert refused(capsys, cache, "--ship", tmp_path / "s.db", "--seal", tmp_path / "none") == (
        f"tc-cache: --seal: cannot read {tmp_path}/none: No such file or directory; name the file with the secret"
    )
