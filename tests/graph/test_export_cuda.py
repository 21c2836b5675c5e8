"""Models exported to CUDA: a program without Python launches their kernels on a driver of the tests' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.settings import Settings
from tests.fuzz.graph_programs import drawn
from tests.graph.exported import described, results, shell
from tests.graph.exported_cuda import ARCHITECTURE, built, nvrtc_folder, toolkit

pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
pytestmark = pytest.mark.skipif(toolkit() is None, reason="there is no cuda.h")

F = ScalarType.FLOAT32
PICK = "def pick(float(E,D) T, int64(B) I) -> (O) { O(b,d) = T(I(b),d) }"
# Partial sums, which a second grid adds.
PRODUCT = "def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
# A grid for each step.
PATHS = "def paths(float(N,N) W) -> (D) { D(i,j) = W(i,j) for k in 0:N { D(i,j) min= D(i,k) + D(k,j) } }"


def graph() -> Graph:
    """Kernels with checks and with temporaries; outputs that are copied."""
    builder = tc.graph.Builder("parts")
    places, x = builder.input("places", ScalarType.INT64, (5,)), builder.input("x", F, (5, 5))
    table = builder.constant(np.cos(np.arange(9 * 784, dtype=np.float32)).reshape(9, 784))
    weights = builder.constant(np.sin(np.arange(784 * 5, dtype=np.float32)).reshape(784, 5))
    (rows,) = builder.call(PICK, table, places)
    (made,) = builder.call(PRODUCT, rows, weights)
    return builder.finish([builder.permute(made, (1, 0)), x, builder.slice(rows, (1, 0), (1, 1), (2, 784))])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda") / "parts"
    tc.graph.Model.of(graph(), Settings(target=f"cuda:{ARCHITECTURE}")).export(folder)
    return built(folder)


def arrays(*places: int) -> list[np.ndarray]:
    return [np.array(places), np.arange(25, dtype=np.float32).reshape(5, 5)]


def test_the_program_computes_what_the_model_does(exported: Path) -> None:
    given = arrays(8, 0, 3, 3, 7)
    found = results(exported, given)
    for one, wanted in zip(found, tc.graph.Model.of(graph())(*given), strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found[1], given[1])
    text = (exported / "model.c").read_text()
    kernels = (exported / "kernels.c").read_text()
    assert "TC_TEMPORARY" in kernels
    assert "TC_FAULT" in kernels
    assert "cuMemcpyDtoDAsync(out_x, in_x, 100, stream)" in text


def test_what_a_kernel_finds_is_said(exported: Path) -> None:
    (exported / "in_places.bin").write_bytes(arrays(8, 0, 3, 9, 7)[0].tobytes())
    names = [f"{one['c_name']}.bin" for one in (*described(exported)["inputs"], *described(exported)["outputs"])]
    assert shell(exported, "./main", "weights.bin", *names, status=1) == (
        "the model: pick_O = pick(constant, places): an index into dimension 0 of T is outside of 0:9\n"
    )


def test_models_may_need_no_kernel(tmp_path: Path) -> None:
    builder = tc.graph.Builder("same")
    x = builder.input("x", F, (3, 4))
    tc.graph.Model.of(builder.finish([x]), Settings(target=f"cuda:{ARCHITECTURE}")).export(tmp_path / "same")
    same = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(results(built(tmp_path / "same"), [same]), [same])


def test_kernels_describe_no_tensors(tmp_path: Path) -> None:
    """Only a driver can: in place of streams of boxes, threads copy tiles."""
    builder, halves = tc.graph.Builder("halves"), ScalarType.FLOAT16
    x, y = builder.input("x", halves, (1024, 128)), builder.input("y", halves, (128, 1024))
    made = builder.call("def mm(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", x, y)
    model = tc.graph.Model.of(builder.finish(list(made)), Settings(target="cuda:sm_90a"))
    (kernel,) = model.compile().kernels.values()
    assert "cp.async.bulk.tensor" in kernel.source
    model.export(tmp_path / "halves")
    (name,) = described(tmp_path / "halves")["kernels"]
    text = (tmp_path / "halves" / name).read_text()
    assert "cp.async.bulk.tensor" not in text
    assert "wgmma.mma_async" in text


CALLS = """
#include "model.h"
#include "files.h"
int main(void) {
  parts_model *model = NULL;
  CUdeviceptr none = 0;
  puts(parts_error(parts_load("nowhere", &model)));
  puts(parts_error(parts_load("model.c", &model)));
  if (parts_load("weights.bin", &model) != 0) return 1;
  CUdeviceptr places, x, turned, same, some;
  CUdeviceptr *all[] = {&places, &x, &turned, &same, &some};
  for (int n = 0; n < 5; n++) cuMemAlloc(all[n], 8000);
  int64_t wrong[5] = {1, 2, 3, 4, -1};
  cuMemcpyHtoD(places, wrong, sizeof wrong);
  puts(parts_error(parts_run(model, 0, NULL, places, x, turned, same, some)));
  puts(parts_error(parts_run(model, 0, NULL, none, x, turned, same, some)));
  puts(parts_error(parts_run(model, places + 8, NULL, places, x, turned, same, some)));
  puts(parts_error(parts_wait(model, 0, NULL)));
  CUgraphExec graph;
  puts(parts_error(parts_capture(model, 0, NULL, places, x, turned, same, some, &graph)));
  CUdeviceptr arena;
  cuMemAlloc(&arena, parts_arena_bytes());
  puts(parts_error(parts_capture(model, arena, NULL, places, x, turned, same, some, &graph)));
  parts_unload(model);
  parts_unload(NULL);
  return 0;
}
"""


def test_wrong_calls_say_why(exported: Path) -> None:
    (exported / "calls.c").write_text(CALLS)
    cuda = toolkit()
    library = ("libparts.a", f"-L{exported}", "-lcuda", f"-Wl,-rpath,{exported}")
    shell(exported, "cc", "-std=gnu11", "-Wall", "-Werror", f"-I{cuda}/include", "calls.c", *library, "-o", "calls")
    refused = "a pointer is NULL, or the arena is not aligned to 256 bytes"
    assert shell(exported, "./calls").splitlines() == [
        "the file of the weights cannot be read",
        "the file is not the weights.bin of this export",
        "pick_O = pick(constant, places): an index into dimension 0 of T is outside of 0:9",
        *[refused] * 4,
        "operation not permitted when stream is capturing",
    ]


@pytest.mark.slow
def test_steps_are_launched_in_order(tmp_path: Path) -> None:
    builder = tc.graph.Builder("paths")
    model = builder.finish(builder.call(PATHS, builder.input("x", F, (129, 129))))
    tc.graph.Model.of(model, Settings(target=f"cuda:{ARCHITECTURE}")).export(tmp_path / "paths")
    assert "TC_STEP" in (tmp_path / "paths" / "kernels.c").read_text()
    x = np.cos(np.arange(129 * 129, dtype=np.float32)).reshape(129, 129) + 2
    (found,) = results(built(tmp_path / "paths"), [x])
    np.testing.assert_array_equal(found, tc.graph.Model.of(model)(x))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed: int, tmp_path: Path) -> None:
    """Their numbers are small integers, whose sums are exact in every order."""
    random = drawn(seed)
    tc.graph.Model.of(random.graph, Settings(target=f"cuda:{ARCHITECTURE}")).export(tmp_path / "drawn")
    for one, wanted in zip(results(built(tmp_path / "drawn"), [*random.inputs.values()]), random.results, strict=True):
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.slow
def test_kernels_are_compiled_anew(exported: Path) -> None:
    """By NVRTC of the same version: to the same bytes."""
    place = nvrtc_folder()
    if place is None:
        pytest.skip("nvidia-cuda-nvrtc is not installed")
    before = {path.name: path.read_bytes() for path in exported.glob("*.cubin")}
    (library,) = (place / "lib").glob("libnvrtc.so.*[0-9]")
    for path in exported.glob("*.cubin"):
        path.unlink()
    linked = f"NVRTC=-L{place / 'lib'} -l:{library.name} -Wl,-rpath,{place / 'lib'}"
    shell(exported, "make", "cubins", f"NVRTC_INCLUDE={place / 'include'}", linked)
    assert {path.name: path.read_bytes() for path in exported.glob("*.cubin")} == before
