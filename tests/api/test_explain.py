"""A user can read what happened to a definition."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import tc
from tests.api.sections import sections
from tests.programs import run

TEXT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
MM = tc.define(TEXT).mm
TITLES = [
    "definition, with sizes and ranges",
    "target",
    "decisions",
    "buffers",
    "statements",
    "schedule",
    "schedule, mapped",
    "steps",
    "proof",
    "times",
    "source",
]


def test_an_explanation_tells_the_whole_way() -> None:
    kernel = MM.compile((129, 17), (17, 65))
    found = sections(MM.explain(np.ones((129, 17), np.float32), np.ones((17, 65), np.float32)))
    assert list(found) == TITLES
    assert "C(m, n) +=! A(m, r_k) * B(r_k, n) where m in 0:129, n in 0:65, r_k in 0:17" in found[TITLES[0]]
    assert found["target"].splitlines()[0] == str(kernel.target)
    assert "tile=None" in found["target"]
    assert found["decisions"].splitlines() == [str(decision) for decision in kernel.decisions]
    assert found["decisions"].startswith("tile: (")
    assert found["buffers"].splitlines() == [
        "A: input, float32[129, 17], strides [17, 1], 8772 bytes",
        "B: input, float32[17, 65], strides [65, 1], 4420 bytes",
        "C: output, float32[129, 65], strides [65, 1], 33540 bytes",
    ]
    assert found["statements"].splitlines()[0] == "S0_init: { S0_init[m, n] : 0 <= m <= 128 and 0 <= n <= 64 }"
    # Before: isl's schedule.  After: tiled, vectorized and spread over the cores.
    assert "floor" not in found["schedule"]
    assert "parallel" not in found["schedule"]
    assert found["schedule, mapped"] == kernel.schedule
    assert "floor" in kernel.schedule
    assert "# parallel" in kernel.schedule
    assert found["proof"] == str(kernel.proof)
    assert [line.split("ms  ")[1] for line in found["times"].splitlines()] == [s.name for s in kernel.stages]
    assert all(re.match(r" *\d+\.\d\d ms  ", line) for line in found["times"].splitlines())
    assert found["source"] == kernel.source.rstrip()


def test_shapes_strides_scalars_and_options_are_explained() -> None:
    text = MM.explain(
        (7, 13), (13, 5), options=tc.CpuOptions(tc.ScheduleOptions(tile=()), threads=1), target="cpu:x86-64"
    )
    assert "cpu:x86-64\n" in text
    assert "tile=()" in text
    assert "threads=1" in text
    turned = sections(MM.explain(tc.ArraySpec((7, 13), tc.ScalarType.FLOAT32, (1, 7)), (13, 5)))
    assert turned["buffers"].splitlines()[0] == "A: input, float32[7, 13], strides [1, 7], 364 bytes"
    pool = tc.define("def pool(float(N) X, int s) -> (O) { O(i) max=! X(s * i + k) where k in 0:s }").pool
    ranges = sections(pool.explain((10,), 3))["definition, with sizes and ranges"]
    assert "O(i) max=! X(3 * i + k)" in ranges
    assert {"i in 0:3", "k in 0:3"} <= set(re.split("where |, ", ranges.splitlines()[1]))


def test_temporaries_accumulators_and_in_out_results_are_named_as_such() -> None:
    definitions = tc.define(
        """
        def norm(float(M,N) X) -> (O) { total(i) +=! X(i,j)  O(i,j) = X(i,j) / total(i) }
        def axpby(float a, float(N) x, float b) -> (y) { y(i) = a * x(i) + b * y(i) }
        def total(half(M,N) X) -> (O) { O(i) +=! X(i,j) }
        """
    )
    in_memory = tc.CpuOptions(register_accumulators=0, local_temporaries=0)
    target = "cpu:x86-64-v4"  # what is kept in registers depends on how long vectors are
    buffers = {
        "norm": sections(definitions.norm.explain((7, 13), target=target, options=in_memory))["buffers"],
        "axpby": sections(definitions.axpby.explain(1.0, (7,), 1.0, target=target))["buffers"],
        "total": sections(definitions.total.explain((7, 13), target=target, options=in_memory))["buffers"],
    }
    assert "total: temporary, float32[7], strides [1], 28 bytes" in buffers["norm"]
    assert "y: in-out, float32[7], strides [1], 28 bytes" in buffers["axpby"]
    assert "O: output, float16[7], strides [1], 14 bytes" in buffers["total"]
    assert "sum0: accumulator, float32[7], strides [1], 28 bytes" in buffers["total"]


def test_what_runs_nothing_explains_itself_too() -> None:
    found = sections(MM.explain((0, 13), (13, 5)))
    assert "where m in 0:0" in found["definition, with sizes and ranges"]
    assert found["proof"].startswith("proven")


def test_stages_are_dumped_on_request(tmp_path: Path) -> None:
    program = f"""
import numpy as np, tc
mm = tc.define({TEXT!r})
mm(np.ones((7, 13), np.float32), np.ones((13, 5), np.float32))
"""
    run(program, environment={"TC_DUMP": str(tmp_path)})
    texts = "\n".join(file.read_text() for file in sorted(tmp_path.rglob("*")) if file.is_file())
    assert "domain { S0[" in texts
    assert "void tc_kernel(" in texts
