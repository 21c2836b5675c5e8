"""``model.c`` for CUDA: the program of the host, by the driver's interface."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from string import Template
from typing import Final

from tc.base.grid import launches
from tc.export.c_text import comment, integer, listed, string
from tc.export.exported import Exported
from tc.graph.export.body import body, missing, unused
from tc.graph.export.header import capture_prototype, run_prototype
from tc.graph.export.program import Launch, ModelProgram

# Where temporaries begin, as launch.h has it.
_ALIGNMENT: Final = 256
_FAULT_BYTES: Final = 4
_SOURCE: Final = """\
$title

#define _POSIX_C_SOURCE 200809L

#include "model.h"

#include "kernels.h"
#include "launch.h"
#include "weights.h"

#include <stdlib.h>

#define WEIGHTS_IDENTITY UINT64_C($identity)
#define WEIGHTS_BYTES UINT64_C($weights)
// The arena holds values, then the temporaries of one kernel at a time, then the faults of all calls.
#define TEMPORARIES $temporaries
#define FAULTS $fault_offset
#define ARENA_BYTES $arena
enum { KERNELS = $kernels, FUNCTIONS = $functions, CALLS = $calls, CHECKS = $checks, CUDA_ERRORS = -1000 };

// Where the functions of each kernel begin.
static const int first_functions[] = {$first_functions};

// The binaries of the kernels (cubins.s).
$externs
static const unsigned char *const binaries[] = {$binaries};

// What positive numbers mean, from 1 on; and the first of each call.
static const char *const faults[] = {
  NULL,
$faults};
static const int first_faults[] = {$first_faults};

struct ${owner}_model {
  CUdeviceptr weights;
  CUmodule modules[KERNELS + 1];
  CUfunction functions[FUNCTIONS + 1];
};

const char *${owner}_error(int error) {
  const char *text = NULL;
  switch (error) {
  case 0: return "no error";
  case ${OWNER}_NO_MEMORY: return "there is no memory";
  case ${OWNER}_NO_FILE: return "the file of the weights cannot be read";
  case ${OWNER}_OTHER_FILE: return "the file is not the weights.bin of this export";
  case ${OWNER}_BAD_ARGUMENT: return "a pointer is NULL, or the arena is not aligned to 256 bytes";
  case ${OWNER}_MISTAKE: return "a kernel found a mistake of its compiler";
  }
  if (error <= CUDA_ERRORS && cuGetErrorString((CUresult)(CUDA_ERRORS - error), &text) == CUDA_SUCCESS) return text;
  return 0 < error && error <= CHECKS ? faults[error] : "an unknown error";
}

static int of_cuda(CUresult result) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return ${OWNER}_NO_MEMORY;
  return result == CUDA_SUCCESS ? 0 : CUDA_ERRORS - (int)result;
}

static int load_kernels(${owner}_model *model) {
  CUresult result = CUDA_SUCCESS;
  for (int n = 0; n < KERNELS && result == CUDA_SUCCESS; n++)
    result = tc_load_kernel(&tc_kernels[n], binaries[n], &model->modules[n], &model->functions[first_functions[n]]);
  return of_cuda(result);
}

static int load_weights(${owner}_model *model, const char *path) {
  tc_weights weights;
  int error = tc_map_weights(&weights, path, WEIGHTS_IDENTITY, WEIGHTS_BYTES);
  if (error != 0) return error;
  error = of_cuda(cuMemAlloc(&model->weights, weights.size));
  if (error == 0) error = of_cuda(cuMemcpyHtoD(model->weights, weights.bytes, weights.size));
  // Of memory that is not pinned, the last part may be under way still, which other streams do not wait for.
  if (error == 0) error = of_cuda(cuStreamSynchronize(NULL));
  tc_unmap_weights(&weights);
  return error;
}

int ${owner}_load(const char *path, ${owner}_model **model) {
  if (path == NULL || model == NULL) return ${OWNER}_BAD_ARGUMENT;
  *model = NULL;
  ${owner}_model *made = calloc(1, sizeof *made);
  if (made == NULL) return ${OWNER}_NO_MEMORY;
  int error = load_weights(made, path);
  if (error == 0) error = load_kernels(made);
  if (error == 0) *model = made;
  else ${owner}_unload(made);
  return error;
}

void ${owner}_unload(${owner}_model *model) {
  if (model == NULL) return;
  for (int n = 0; n < KERNELS; n++)
    if (model->modules[n] != NULL) cuModuleUnload(model->modules[n]);
  if (model->weights != 0) cuMemFree(model->weights);
  free(model);
}

size_t ${owner}_arena_bytes(void) { return ARENA_BYTES; }

// Starts a kernel.  `number`: of the call among all of the model.
static inline int call(const ${owner}_model *model, CUdeviceptr arena, CUstream stream, int kernel, int number,
                CUdeviceptr *operands) {
  CUdeviceptr fault = arena + FAULTS + (CUdeviceptr)number * sizeof(int32_t);
  const CUfunction *functions = &model->functions[first_functions[kernel]];
  return of_cuda(tc_launch_kernel(&tc_kernels[kernel], functions, operands, arena + TEMPORARIES, fault, stream));
}

// Starts the kernels in order.  `w`: the weights, `a`: the arena.
$run_kernels {
  const CUdeviceptr w = model->weights;
  int error = CHECKS > 0 ? of_cuda(cuMemsetD32Async(a + FAULTS, 0, CALLS, stream)) : 0;
  if (error != 0) return error;
$unused
$body
  return error;
}

$run_in {
  int error = $called
  int found = ${owner}_wait(model, arena, stream);
  return error != 0 ? error : found;
}

$run {
  if (model == NULL || arena % 256 != 0) return ${OWNER}_BAD_ARGUMENT;
$missing
  if (arena != 0) return $called
  int error = of_cuda(cuMemAlloc(&arena, ARENA_BYTES));
  if (error != 0) return error;
  error = $called_in
  cuMemFree(arena);
  return error;
}

int ${owner}_wait(const ${owner}_model *model, CUdeviceptr arena, CUstream stream) {
  if (model == NULL || arena == 0 || arena % 256 != 0) return ${OWNER}_BAD_ARGUMENT;
  int error = of_cuda(cuStreamSynchronize(stream));
  if (error != 0 || CHECKS == 0) return error;
  int32_t found[CALLS + 1];
  error = of_cuda(cuMemcpyDtoH(found, arena + FAULTS, CALLS * sizeof *found));
  for (int n = 0; n < CALLS && error == 0; n++)
    if (found[n] != 0) error = found[n] > 0 ? first_faults[n] - 1 + found[n] : ${OWNER}_MISTAKE;
  return error;
}

$capture {
  if (model == NULL || arena == 0 || arena % 256 != 0 || graph == NULL) return ${OWNER}_BAD_ARGUMENT;
$missing
  int error = of_cuda(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  if (error != 0) return error;
  error = $called
  CUgraph captured = NULL;
  int ended = of_cuda(cuStreamEndCapture(stream, &captured));
  if (error == 0) error = ended;
  if (error == 0) error = of_cuda(cuGraphInstantiateWithFlags(graph, captured, 0));
  if (captured != NULL) cuGraphDestroy(captured);
  return error;
}
"""
_CUBIN: Final = """\
.balign 64
.globl {owner}_binary_{number}
.hidden {owner}_binary_{number}
{owner}_binary_{number}:
.incbin "{name}.cubin"
"""
_CUBINS: Final = """\
/* The binaries of the kernels, as data of the program. */
.section .rodata
{binaries}
.section .note.GNU-stack,"",%progbits
"""


def cuda_source(program: ModelProgram) -> str:
    """The text of the file."""
    arrays = [one.c_name for one in (*program.inputs, *program.outputs)]
    kernels = program.kernels
    temporaries = _rounded(program.arena)
    faults = temporaries + max((_temporary_bytes(kernel) for kernel in kernels), default=0)
    counts = [_functions(kernel) for kernel in kernels]
    firsts = list(itertools.accumulate(counts, initial=0))[:-1]
    binaries = [f"{program.owner}_binary_{number}" for number in range(len(kernels))]
    return Template(_SOURCE).substitute(
        title=comment(f"The model {program.name}, for CUDA: its kernels, in order."),
        owner=program.owner,
        OWNER=program.owner.upper(),
        identity=f"{program.weights.identity:#018x}",
        weights=program.weights.size,
        temporaries=integer(temporaries),
        fault_offset=integer(faults),
        arena=integer(_rounded(faults + _FAULT_BYTES * (len(program.launches) + 1))),
        kernels=len(kernels),
        functions=sum(counts),
        calls=len(program.launches),
        checks=len(program.faults),
        first_functions=", ".join(map(str, [*firsts, sum(counts)])),
        externs="\n".join(f"extern const unsigned char {name}[];" for name in binaries),
        binaries=", ".join([*binaries, "NULL"]),
        faults="".join(f"  {string(fault)},\n" for fault in program.faults),
        first_faults=", ".join(str(launch.first_fault) for launch in program.launches) or "0",
        unused=unused(["w", *arrays]),
        body=body(program, _call, _copy),
        run_kernels=_own_function(program, "run_kernels", "a", arrays),
        run_in=_own_function(program, "run_in", "arena", arrays),
        called=listed("run_kernels(", ["model", "arena", "stream", *arrays], ");"),
        called_in=listed("run_in(", ["model", "arena", "stream", *arrays], ");"),
        run=run_prototype(program, cuda=True),
        capture=capture_prototype(program),
        missing=missing(program, "0"),
    )


def cubins_source(program: ModelProgram) -> str:
    """The text of ``cubins.s``, which puts the binaries of the kernels into the program."""
    names = [kernel.name for kernel in program.kernels]
    parts = (_CUBIN.format(owner=program.owner, number=number, name=name) for number, name in enumerate(names))
    return _CUBINS.format(binaries="".join(parts))


def _functions(kernel: Exported) -> int:
    """How many launches a call of a kernel makes."""
    convention = kernel.executable.convention
    return len(list(launches(len(convention.grids), convention.steps)))


def _temporary_bytes(kernel: Exported) -> int:
    return sum(_rounded(size) for size in kernel.executable.convention.temporaries)


def _rounded(size: int) -> int:
    return size + -size % _ALIGNMENT


def _own_function(program: ModelProgram, name: str, arena: str, arrays: Sequence[str]) -> str:
    """The head of a function that others do not see."""
    first = (f"const {program.owner}_model *model", f"CUdeviceptr {arena}", "CUstream stream")
    return listed(f"static int {name}(", (*first, *(f"CUdeviceptr {array}" for array in arrays)), ")")


def _call(launch: Launch, operands: Sequence[str]) -> str:
    first = f"  error = call(model, a, stream, {launch.kernel}, {launch.number}, (CUdeviceptr[]){{"
    return listed(first, operands, "});")


def _copy(target: str, source: str, bytes: int) -> str:
    copied = f"  error = of_cuda(cuMemcpyDtoDAsync({target}, {source}, {bytes}, stream));"
    return f"{copied}\n  if (error != 0) return error;"
