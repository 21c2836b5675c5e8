"""Options and sources that were chosen: checked like any candidate, then run by calls that name no options."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tc
from tc.artifact.packing import has_injected_source, options_text
from tc.cache.content.store import Store
from tc.cache.format.tables import MEASUREMENTS, VARIANTS
from tc.commands.cache import main
from tc.tuner.report.page import report
from tc.tuner.session.inject import INPUTS
from tests.api.sections import sections
from tests.commands.caches import contents

TEXT: Final = """
def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
def twice(float(N) x) -> (y) { y(n) = 2.0 * x(n) }
"""
GOOD: Final = tc.CpuOptions(tc.ScheduleOptions(tile=(5, 7)), register_tile=(), threads=1)
SIZE: Final = "M=33,N=29,K=17"
STRICT: Final = """
import sys, numpy as np, tc
mm = tc.define(sys.argv[1]).mm
a, b = np.ones((33, 17), np.float32), np.ones((17, 29), np.float32)
kernel = mm.compile(a, b)
np.testing.assert_array_equal(mm(a, b), np.full((33, 29), 17, np.float32))
print(kernel.asked.to_json(), kernel.proof, "edited" in kernel.source, sep="|")
explicit = mm.compile(a, b, options=tc.CpuOptions())
"""
EXPLAINED: Final = """
import sys, tc
print(tc.define(sys.argv[1]).mm.explain((33, 17), (17, 29)))
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.tc"
    path.write_text(TEXT)
    return path


def add(*arguments: object) -> int:
    return main(["add", *map(str, arguments)])


def strict(cache: Path, *, mode: str = "strict", program: str = STRICT) -> subprocess.CompletedProcess[str]:
    """What a process says that runs a program with this cache alone, without a compiler."""
    where = {"TC_CACHE": str(cache), "TC_CACHE_MODE": mode, "TC_CC": "/nowhere/cc"}
    return subprocess.run([sys.executable, "-c", program, TEXT], env=where, capture_output=True, text=True, check=False)


def count(cache: Path) -> tuple[int, int]:
    """Variants and measurements."""
    with contents(cache) as found:
        return len(list(found.records(VARIANTS))), len(list(found.records(MEASUREMENTS)))


def test_options_are_checked_kept_and_run(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache, shipped = tmp_path / "tuned.db", tmp_path / "prod.db"
    assert add(cache, text, "--definition", "mm", "--size", SIZE, "--options", GOOD.to_json()) == 0
    printed = capsys.readouterr().out
    assert re.fullmatch(
        r"mm\(M=33,N=29,K=17\): [\d.]+ \S+ \([\d.]+ \S+ to [\d.]+ \S+\), [\d.]+x the default; proven: .*\n", printed
    )
    assert count(cache) == (1, 1)
    assert main(["verify", str(cache)]) == 0
    assert main(["list", str(cache)]) == 0
    assert main(["export", str(cache), "--ship", str(shipped)]) == 0
    assert "injected source" not in capsys.readouterr().out
    # It is run however slow it is.
    found = strict(shipped)
    assert found.stdout.startswith(f"{GOOD.to_json()}|proven: ")
    assert "has no kernel for mm" in found.stderr, "explicit options are something else"
    with contents(cache) as stored:
        ((variant, _),) = stored.records(VARIANTS)
        assert json.loads(variant.origin)["made"] == "injected: options"


ANY_ORDER: Final = """
import sys, tc
numerics = tc.Numerics(deterministic=False)
mm = tc.define(sys.argv[1], options=tc.CpuOptions(numerics=numerics)).mm
print(mm.compile((33, 17), (17, 29)).asked.to_json())
tc.define(sys.argv[1]).mm.compile((33, 17), (17, 29))
"""


def test_a_winner_serves_calls_with_its_numerics_alone(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, shipped = tmp_path / "tuned.db", tmp_path / "prod.db"
    options = replace(GOOD, numerics=tc.Numerics(deterministic=False))
    assert add(cache, text, "--definition", "mm", "--size", SIZE, "--options", options.to_json()) == 0
    assert main(["verify", str(cache)]) == 0
    assert main(["list", str(cache)]) == 0
    assert re.search(r"\bmm\b", capsys.readouterr().out), "its text is known"
    assert main(["prune", str(cache), "--older-than", "0d"]) == 0
    assert main(["export", str(cache), "--ship", str(shipped)]) == 0
    found = strict(shipped, program=ANY_ORDER)
    assert found.stdout == f"{options.to_json()}\n"
    assert "has no kernel for mm" in found.stderr, "with the default numerics"


def edited(path: Path, change: str) -> Path:
    """The source of the default kernel, in a file, with a change."""
    a, b = np.ones((33, 17), np.float32), np.ones((17, 29), np.float32)
    source = tc.define(TEXT).mm.compile(a, b).source
    head, entry, tail = source.rpartition("tc_kernel_body(")
    call, _, rest = tail.partition(";")
    path.write_text(f"/* edited */\n{head}{entry}{call};\n{change}{rest}")
    return path


def test_a_source_is_tried_on_several_inputs_and_marked(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert INPUTS == 5
    monkeypatch.setattr("tc.tuner.session.inject.INPUTS", 2)
    cache, shipped, source = tmp_path / "tuned.db", tmp_path / "prod.db", edited(tmp_path / "mm.c", "")
    assert add(cache, text, "--definition", "mm", "--size", SIZE, "--source", source) == 0
    unproven = "not proven: this source was injected; its results agreed with the definition's on 2 random inputs"
    assert capsys.readouterr().out.endswith(f"; {unproven}\n")
    assert main(["verify", str(cache)]) == 0
    assert re.fullmatch(rf"note: kernel .* is {re.escape(unproven)}\n", capsys.readouterr().out)
    assert main(["list", str(cache)]) == 0
    assert "x, injected source" in capsys.readouterr().out
    assert "not proven: this source was injected" in report(str(cache))
    assert main(["export", str(cache), "--ship", str(shipped)]) == 0
    found = strict(shipped)
    assert found.stdout == f"{tc.CpuOptions().to_json()}|{unproven}|True\n"
    # Whoever names options gets what is proven, or nothing.
    assert "has no kernel for mm" in found.stderr
    explained = sections(strict(shipped, program=EXPLAINED).stdout)
    assert list(explained) == ["definition, with sizes and ranges", "target", "buffers", "proof", "cache", "source"]
    assert explained["source"] == source.read_text().rstrip()
    assert explained["proof"] == unproven
    assert explained["buffers"].splitlines()[0] == "A: input, float32[33, 17], strides [17, 1], 2244 bytes"
    with contents(cache) as stored:
        ((variant, _),) = stored.records(VARIANTS)
        assert variant.options != options_text(tc.CpuOptions())


slow = pytest.mark.slow
WRONG: Final = [
    ("((float *)buffers[2])[7] += 1.0f;", "mm: nothing is kept: wrong result: "),
    pytest.param("((float *)buffers[2])[33 * 29] = 1;", "mm: nothing is kept: wrote out of bounds: ", marks=slow),
    pytest.param("*(volatile int *)8 = 1;", "mm: nothing is kept: crashed: ", marks=slow),
    ("what is this;", "the C compiler refused"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_sources_that_do_something_else_are_refused(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, message: str
) -> None:
    cache, source = tmp_path / "tuned.db", edited(tmp_path / "mm.c", change)
    Store.open(cache)
    assert add(cache, text, "--definition", "mm", "--size", SIZE, "--source", source) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert count(cache) == (0, 0)


REFUSED: Final[list[tuple[tuple[str, ...], str]]] = [
    ((), "name what to add: --options JSON, --source FILE, or both"),
    (("--options", '{"thread": 1}'), "options: CpuOptions has no option 'thread'; did you mean 'threads'?"),
    (("--options", "{}", "--target", "emulator", "--size", "M=1"), "mm needs the sizes"),
    (
        ("--options", "nowhere.json"),
        "options must be JSON, or the name of a file with JSON; 'nowhere.json': No such file",
    ),
    (("--options", '[{}, {"threads": 1}]'), "--options takes those of one kernel, got 2"),
    (("--source", "nowhere.c"), "cannot read nowhere.c: No such file or directory"),
    (("--options", '{"check_indices": false}', "--size", SIZE), "options leave out the checks of indices"),
    (("--options", '{"schedule": {"tile": [8, 8, 8, 8]}}', "--size", SIZE), "mm: "),
    (("--options", "{}", "--definition", "mmm", "--size", SIZE), "defines no 'mmm'; did you mean 'mm'?"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_what_cannot_be_added(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    definition = () if "--definition" in arguments else ("--definition", "mm")
    assert add(tmp_path / "tuned.db", text, *definition, *arguments) == 2
    assert message in capsys.readouterr().err
    assert add(tmp_path / "tuned.db", "--options", "{}") == 2
    assert "name a cache and one file of definitions" in capsys.readouterr().err


def test_one_definition_is_named(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert add(tmp_path / "tuned.db", text, "--size", "N=5", "--options", "{}") == 2
    assert "needs the sizes" in capsys.readouterr().err


@pytest.mark.slow
def test_a_search_measures_what_was_added(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.tuner.session.search_setup._bound", lambda _work, _target, _device: None)
    cache, source = tmp_path / "tuned.db", edited(tmp_path / "mm.c", "")
    assert add(cache, text, "--definition", "mm", "--size", SIZE, "--source", source) == 0
    tc.define(TEXT).mm.tune((33, 17), (17, 29), budget="2 trials", cache=cache, jobs=1, progress=False)
    with contents(cache) as stored:
        measured = [one for one, _ in stored.records(MEASUREMENTS) if has_injected_source(one.options)]
    assert [one.chosen for one in sorted(measured, key=lambda one: one.at)] == [True, False]
