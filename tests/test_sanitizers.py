"""The sanitizers see what they are there for: kernels that are wrong on purpose do not get away with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fuzz.execute import Verdict
from tests.fuzz.recipe import COPY
from tests.fuzz.workers import elsewhere
from tests.programs import run
from tests.sanitizers import Sanitizer, headline, missing, report, under, variables
from tests.turns import every
from tests.waiting import PATIENCE


def watched(sanitizer: Sanitizer) -> Mapping[str, str]:
    """What a process needs for its kernels to be watched."""
    if (why := missing(sanitizer)) is not None:
        pytest.skip(why)
    return variables(sanitizer)


RED_ZONES = """
import ctypes
import ml_dtypes
import numpy as np
import torch
import tc
from tests.fuzz.arrays import make
from tests.fuzz.recipe import TensorArgument

poisoned = ctypes.CDLL(None).__asan_address_is_poisoned

def check(array, what):
    address, size = array.ctypes.data, array.nbytes
    inside = [poisoned(ctypes.c_void_p(address + place)) for place in {0, size // 2, size - 1}]
    ends = [poisoned(ctypes.c_void_p(address - 1)), poisoned(ctypes.c_void_p(address + size))]
    assert not any(inside) and all(ends), (what, array.dtype, array.shape, inside, ends)

copy = tc.define("def copy(float(M,N) X) -> (O) { O(i,j) = X(i,j) }").copy
rng = np.random.default_rng(0)
for size in (1, 2, 7, 129, 1000, 4099, 300_000):
    for type in tc.ScalarType:
        check(make(rng, TensorArgument(type, (size,)), (size,)).view, "an argument")
        check(np.empty(size, type.value), "np.empty")
    check(np.zeros(size, np.float32), "np.zeros")
    check(torch.empty(size, dtype=torch.float64).numpy(), "torch.empty")
    check(copy(np.ones((size, 3), np.float32)), "a result")
    check(copy(torch.ones(size, 3)).numpy(), "a result")
print("checked")
"""


@pytest.mark.slow
def test_red_zones_surround_arrays() -> None:
    assert run(RED_ZONES, environment=watched(Sanitizer.ADDRESS)) == "checked\n"


# Children that run one kernel each; a sanitizer ends them with a report.
CHILDREN = """
import os
import numpy as np
from tests.runtime.kernels import addresses, load
from tc.base.types import ScalarType

def child(body, arrays, scalars=(), threads=2):
    kernel = load(body, len(arrays), (ScalarType.INT64,) * len(scalars))
    child = os.fork()
    if child == 0:
        os.dup2(1, 2)
        kernel.launch(addresses(*arrays), scalars, threads)
        os._exit(0)
    print(f"status {os.waitpid(child, 0)[1]}", flush=True)
"""
ONE_TOO_FAR = """
COPY = '''
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = 0; i < 129; i++) y[i + scalars[1].i] = x[i + scalars[0].i];
}
'''
for read, write in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)):
    child(COPY, [np.ones(129, np.float32), np.ones(129, np.float32)], (read, write))
"""


def reports(printed: str) -> list[str | None]:
    """Of every child, the headline of its report; None for one that ended well."""
    *logs, rest = printed.split("status ")
    statuses = [part.split()[0] for part in (*logs[1:], rest)]
    found = [headline(log) for log in logs]
    assert [status == "0" for status in statuses] == [log is None for log in found], printed
    return found


def test_one_element_too_far_is_reported_at_both_ends() -> None:
    printed = run(CHILDREN + ONE_TOO_FAR, environment=watched(Sanitizer.ADDRESS))
    assert reports(printed) == [None, *["AddressSanitizer: heap-buffer-overflow"] * 4]
    assert "READ of size 4" in printed
    assert "WRITE of size 4" in printed


UNDEFINED = """
KERNEL = '''
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  int64_t *x = buffers[0], n = scalars[0].i;
  int32_t local[8] = {0};
  STATEMENT;
}
'''
for statement in (
    "x[0] = 1 << n % 32", "x[0] = 1 << n", "x[0] = (int32_t)(1e9 * n)", "((int64_t *)((char *)x + n - 63))[0] = 1",
    "x[0] = (n - n ? x : (int64_t *)0)[0]", "x[0] = local[n]", "x[0] = x[0] / (n - 64)",
):
    child(KERNEL.replace("STATEMENT", statement), [np.ones(7, np.int64)], (64,))
"""


def test_undefined_behaviour_is_reported() -> None:
    assert reports(run(CHILDREN + UNDEFINED, environment=watched(Sanitizer.ADDRESS))) == [
        None,
        "runtime error: shift exponent is too large for",
        "runtime error: is outside the range of representable",
        "runtime error: store to misaligned address for type",
        "runtime error: load of null pointer of type",
        "runtime error: index out of bounds for type",
        "runtime error: division by zero",
    ]


RACE = """
SUM = '''
#include <time.h>
struct context { int64_t *sum, chunks; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  (void)scratch;
  const struct context *c = context;
  c->sum[STRIDE * begin] += end - begin;
  // No chunk ends before all have begun, each on a thread of its own.
  __atomic_fetch_add(&c->sum[7], 1, __ATOMIC_RELAXED);
  for (time_t start = time(0); __atomic_load_n(&c->sum[7], __ATOMIC_RELAXED) < c->chunks && time(0) < start + 900;);
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {buffers[0], runtime->threads};
  runtime->parallel_for(runtime, body, &c, 0, 2);
}
'''
for stride in (1, 0):
    child(SUM.replace("STRIDE", str(stride)), [np.zeros(8, np.int64)])
"""


def test_a_race_between_chunks_is_reported() -> None:
    printed = run(CHILDREN + RACE, environment=watched(Sanitizer.THREAD), under=under(Sanitizer.THREAD))
    assert reports(printed) == [None, "ThreadSanitizer: data race"]


BROKEN = """
from unittest.mock import patch
from tc.runtime.host.c_compiler import compiling
from tests.fuzz.execute import execute
from tests.fuzz.recipe import COPY

def spoil(source, flags, compiler):
    assert source.count("c0 < 7") == 1
    return compiling(source.replace("c0 < 7", "c0 < 8"), flags, compiler)

with patch("tc.compiler.compiling", spoil):
    print(execute(COPY))
"""


def test_a_generated_kernel_that_goes_one_too_far_is_reported() -> None:
    with pytest.raises(AssertionError, match="AddressSanitizer: heap-buffer-overflow"):
        run(BROKEN, environment=watched(Sanitizer.ADDRESS))


def test_the_fuzzer_keeps_the_report_of_a_lost_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tmp_path / "broken.h"
    header.write_text(
        "#include <stdlib.h>\n"
        "__attribute__((constructor)) static void f(void) { volatile char *volatile p = malloc(7); p[7] = 1; }\n",
        encoding="utf-8",
    )
    environment = watched(Sanitizer.ADDRESS)
    monkeypatch.setattr(
        "tests.fuzz.workers.variables",
        lambda _: {
            **environment,
            "TC_CC": f"{environment['TC_CC']} -include {header}",
            "XDG_CACHE_HOME": str(tmp_path),
        },
    )
    with elsewhere(PATIENCE) as execute:
        outcome = execute(COPY)
    assert (outcome.verdict, outcome.kind) == (Verdict.FAILED, "AddressSanitizer: heap-buffer-overflow")
    assert "WRITE of size 1" in outcome.detail
    assert "Shadow bytes" not in outcome.detail


def test_reports_are_cut_to_what_can_be_read() -> None:
    title = "==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1"
    log = f"{title}\nREAD of size 4\nShadow bytes around the buggy address:\n  00 fa"
    assert headline(log) == "AddressSanitizer: heap-use-after-free"
    assert report(log) == f"{title}\nREAD of size 4"
    assert headline("a warning") is None


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert variables(Sanitizer.NONE) == {}
    with pytest.raises(LookupError, match="sanitizers need gcc, which is not on the PATH"):
        variables(Sanitizer.ADDRESS)


STRESS = """
from tests.stress import call_and_compile, compute_from_many_threads
compute_from_many_threads(10, 4)
call_and_compile(1, 12, (7, 129))
"""
WEAKER = """
from unittest.mock import patch
from tc.runtime.host.c_compiler import compile_shared
from tests.stress import compute_from_many_threads

def weaken(source, flags, compiler, **options):
    if "kept_workspaces" in source:  # the pool, not the kernels
        assert "{order}" in source
        source = source.replace("{order}", "memory_order_relaxed")
    return compile_shared(source, flags, compiler, **options)

with patch("tc.runtime.host.c_compiler.compile_shared", weaken):
    compute_from_many_threads(200, 4)
"""


@pytest.mark.parametrize(
    "sanitizer", every(2, [Sanitizer.THREAD, Sanitizer.ADDRESS]), ids=lambda sanitizer: sanitizer.value
)
def test_many_threads_call_and_compile(sanitizer: Sanitizer) -> None:
    run(STRESS, environment=watched(sanitizer), under=under(sanitizer))


@pytest.mark.parametrize("order", every(2, ["memory_order_acquire", "memory_order_release"]))
def test_a_pool_of_weaker_order_is_reported(order: str, tmp_path: Path) -> None:
    environment = {**watched(Sanitizer.THREAD), "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(AssertionError, match="ThreadSanitizer: data race"):
        run(WEAKER.format(order=order), environment=environment, under=under(Sanitizer.THREAD))
