"""``model.c`` for processors."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Final

from tc.export.c_text import comment, integer, listed, string
from tc.graph.export.body import body, missing, unused
from tc.graph.export.header import run_prototype
from tc.graph.export.program import Launch, ModelProgram

_SOURCE: Final = """\
$title

#define _POSIX_C_SOURCE 200809L

#include "model.h"

#include "kernels.h"
#include "weights.h"

#include <stdlib.h>

#define WEIGHTS_IDENTITY UINT64_C($identity)
#define WEIGHTS_BYTES UINT64_C($weights)
#define ARENA_BYTES $arena
enum { CHECKS = $checks };

struct ${owner}_model {
  tc_weights weights;
};

// What positive numbers mean, from 1 on.
static const char *const faults[] = {
  NULL,
$faults};

const char *${owner}_error(int error) {
  switch (error) {
  case 0: return "no error";
  case ${OWNER}_NO_MEMORY: return "there is no memory";
  case ${OWNER}_NO_FILE: return "the file of the weights cannot be read";
  case ${OWNER}_OTHER_FILE: return "the file is not the weights.bin of this export";
  case ${OWNER}_BAD_ARGUMENT: return "a pointer is NULL, or the arena is not aligned to 64 bytes";
  case ${OWNER}_MISTAKE: return "a kernel found a mistake of its compiler";
  }
  return 0 < error && error <= CHECKS ? faults[error] : "an unknown error";
}

int ${owner}_load(const char *path, ${owner}_model **model) {
  if (path == NULL || model == NULL) return ${OWNER}_BAD_ARGUMENT;
  *model = NULL;
  ${owner}_model *made = malloc(sizeof *made);
  if (made == NULL) return ${OWNER}_NO_MEMORY;
  int error = tc_map_weights(&made->weights, path, WEIGHTS_IDENTITY, WEIGHTS_BYTES);
  if (error == 0) *model = made;
  else free(made);
  return error;
}

void ${owner}_unload(${owner}_model *model) {
  if (model == NULL) return;
  tc_unmap_weights(&model->weights);
  free(model);
}

size_t ${owner}_arena_bytes(void) { return ARENA_BYTES; }

// Runs a kernel.  `first`: the number of the fault that is its first one.
static inline int call(int kernel, int first, int64_t threads, void *const *operands) {
  int32_t fault = tc_call(&tc_kernels[kernel], operands, NULL, threads);
  if (fault > 0) return first - 1 + fault;
  return fault == 0 ? 0 : fault == TC_NO_MEMORY ? ${OWNER}_NO_MEMORY : ${OWNER}_MISTAKE;
}

// Runs the kernels in order.  `w`: the weights, `a`: the arena.
$run_kernels {
  int error = 0;
$unused
$body
  return error;
}

$run {
  if (model == NULL || (uintptr_t)arena % 64 != 0) return ${OWNER}_BAD_ARGUMENT;
$missing
  void *own = NULL;
  if (arena == NULL) {
    arena = own = aligned_alloc(64, ARENA_BYTES);
    if (own == NULL) return ${OWNER}_NO_MEMORY;
  }
$called
  free(own);
  return error;
}
"""


def processor_source(program: ModelProgram) -> str:
    """The text of the file."""
    arrays = [one.c_name for one in (*program.inputs, *program.outputs)]
    places, given = [f"char *{name}" for name in arrays], [f"(char *){name}" for name in arrays]
    return Template(_SOURCE).substitute(
        title=comment(f"The model {program.name}, for processors: its kernels, in order."),
        owner=program.owner,
        OWNER=program.owner.upper(),
        identity=f"{program.weights.identity:#018x}",
        weights=program.weights.size,
        # No allocation is empty.
        arena=integer(max(program.arena, 64)),
        checks=len(program.faults),
        faults="".join(f"  {string(fault)},\n" for fault in program.faults),
        run_kernels=listed("static int run_kernels(", ["char *w", "char *a", "int64_t threads", *places], ")"),
        unused=unused(["w", "a", "threads", *arrays]),
        body=body(program, _call, _copy),
        run=run_prototype(program, cuda=False),
        missing=missing(program, "NULL"),
        called=listed("  int error = run_kernels(", ["model->weights.bytes", "arena", "threads", *given], ");"),
    )


def _call(launch: Launch, operands: Sequence[str]) -> str:
    first = f"  error = call({launch.kernel}, {launch.first_fault}, threads, (void *[]){{"
    return listed(first, operands, "});")


def _copy(target: str, source: str, bytes: int) -> str:
    return f"  memcpy({target}, {source}, {bytes});"
