"""``main.c``: a program that reads raw arrays from files, runs the model, and writes its results to files."""

from __future__ import annotations

from collections.abc import Iterator
from string import Template
from typing import Final

from tc.graph.export.program import ModelProgram

_PROCESSOR: Final = """\
// Runs the model once on files of raw elements.

#include "model.h"

#include "files.h"

static void check(int error) {
  if (error != 0) stop("the model", ${owner}_error(error));
}

int main(int count, char **arguments) {
  if (count != $count) stop("usage", "main weights.bin threads $files");
  ${owner}_model *model;
  check(${owner}_load(arguments[1], &model));
  int64_t threads = atoll(arguments[2]);
$lines
  ${owner}_unload(model);
  return 0;
}
"""
_CUDA: Final = """\
// Runs the model once, as a graph, on files of raw elements and the first GPU.

#include "model.h"

#include "files.h"

static void check(int error) {
  if (error != 0) stop("the model", ${owner}_error(error));
}

static void check_cuda(CUresult result) {
  const char *text = "an unknown error of CUDA";
  if (result == CUDA_SUCCESS) return;
  cuGetErrorString(result, &text);
  stop("CUDA", text);
}

static CUdeviceptr on_device(size_t bytes) {
  CUdeviceptr memory;
  check_cuda(cuMemAlloc(&memory, bytes > 0 ? bytes : 1));
  return memory;
}

static inline CUdeviceptr read_to_device(const char *path, size_t bytes) {
  CUdeviceptr memory = on_device(bytes);
  void *held = read_file(path, bytes);
  check_cuda(cuMemcpyHtoD(memory, held, bytes));
  free(held);
  return memory;
}

static inline void write_from_device(const char *path, CUdeviceptr memory, size_t bytes) {
  void *held = allocate(bytes);
  check_cuda(cuMemcpyDtoH(held, memory, bytes));
  write_file(path, held, bytes);
  free(held);
}

int main(int count, char **arguments) {
  if (count != $count) stop("usage", "main weights.bin $files");
  CUdevice device;
  CUcontext context;
  CUstream stream;
  check_cuda(cuInit(0));
  check_cuda(cuDeviceGet(&device, 0));
  check_cuda(cuDevicePrimaryCtxRetain(&context, device));
  check_cuda(cuCtxSetCurrent(context));
  check_cuda(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  ${owner}_model *model;
  check(${owner}_load(arguments[1], &model));
  CUdeviceptr arena = on_device(${owner}_arena_bytes());
$lines
  check_cuda(cuGraphExecDestroy(graph));
  check_cuda(cuMemFree(arena));
  ${owner}_unload(model);
  check_cuda(cuStreamDestroy(stream));
  return 0;
}
"""
# Arguments of the program before its files.
_FIRST_PROCESSOR: Final = 3
_FIRST_CUDA: Final = 2


def example(program: ModelProgram, *, cuda: bool) -> str:
    """The text of the file."""
    first = _FIRST_CUDA if cuda else _FIRST_PROCESSOR
    lines = _cuda(program, first) if cuda else _processor(program, first)
    arrays = [one.c_name for one in (*program.inputs, *program.outputs)]
    return Template(_CUDA if cuda else _PROCESSOR).substitute(
        owner=program.owner,
        count=first + len(arrays),
        files=" ".join(f"{name}.bin" for name in arrays),
        lines="\n".join(f"  {line}" for line in lines),
    )


def _processor(program: ModelProgram, first: int) -> Iterator[str]:
    for number, one in enumerate(program.inputs, first):
        yield f"void *{one.c_name} = read_file(arguments[{number}], {one.bytes});"
    for one in program.outputs:
        yield f"void *{one.c_name} = allocate({one.bytes});"
    arrays = "".join(f", {one.c_name}" for one in (*program.inputs, *program.outputs))
    yield f"check({program.owner}_run(model, NULL, threads{arrays}));"
    for number, one in enumerate(program.outputs, first + len(program.inputs)):
        yield f"write_file(arguments[{number}], {one.c_name}, {one.bytes});"
    yield from (f"free({one.c_name});" for one in (*program.inputs, *program.outputs))


def _cuda(program: ModelProgram, first: int) -> Iterator[str]:
    for number, one in enumerate(program.inputs, first):
        yield f"CUdeviceptr {one.c_name} = read_to_device(arguments[{number}], {one.bytes});"
    for one in program.outputs:
        yield f"CUdeviceptr {one.c_name} = on_device({one.bytes});"
    arrays = "".join(f", {one.c_name}" for one in (*program.inputs, *program.outputs))
    yield "CUgraphExec graph;"
    yield f"check({program.owner}_capture(model, arena, stream{arrays}, &graph));"
    yield "check_cuda(cuGraphLaunch(graph, stream));"
    yield f"check({program.owner}_wait(model, arena, stream));"
    for number, one in enumerate(program.outputs, first + len(program.inputs)):
        yield f"write_from_device(arguments[{number}], {one.c_name}, {one.bytes});"
    yield from (f"check_cuda(cuMemFree({one.c_name}));" for one in (*program.inputs, *program.outputs))
