"""``model.h``: the function that is the model, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from string import Template
from typing import Final

from tc.export.c_text import comment, listed
from tc.export.c_types import c_type
from tc.graph.export.program import ModelProgram, Parameter
from tc.graph.ir.sizes import shape_text

_HEAD: Final = """\
$title
// Exported by Tensor Comprehensions.  README.md says how to build and call it.

#ifndef ${OWNER}_MODEL_H
#define ${OWNER}_MODEL_H

$includes

#ifdef __cplusplus
extern "C" {
#endif

// What the functions return: 0, one of these, or another number, which ${owner}_error explains, too.
enum {
  ${OWNER}_NO_MEMORY = -1,
  ${OWNER}_NO_FILE = -2,       // it cannot be read
  ${OWNER}_OTHER_FILE = -3,    // it is not the weights.bin of this export
  ${OWNER}_BAD_ARGUMENT = -4,  // a pointer that must not be NULL, or an arena that is not aligned to 64 bytes
  ${OWNER}_MISTAKE = -5,       // of the compiler of the kernels
};

// The text for what a function returned.
const char *${owner}_error(int error);

"""
_TAIL: Final = """
#ifdef __cplusplus
}
#endif

#endif
"""
_PROCESSOR: Final = """\
// The weights.  They are only read: any number of threads may use them at a time.
typedef struct ${owner}_model ${owner}_model;

// Maps weights.bin, which is at `path`, and must not change until it is let go.
int ${owner}_load(const char *path, ${owner}_model **model);
void ${owner}_unload(${owner}_model *model);

// Bytes of memory that a call needs beyond its arrays; the workspace of single kernels aside.
size_t ${owner}_arena_bytes(void);

// Runs the model on at most `threads` threads (lib${owner}.a: on one).  Safe from many threads.
//
// `arena`: memory that no other call uses meanwhile, aligned to 64 bytes; NULL: the call allocates it.
// Arrays are C-contiguous, and do not overlap.  After an error, what the outputs hold is undefined.
$arrays
$run
"""
_CUDA: Final = """\
// Weights and kernels on the device of the context that was current when they were loaded.  They are only read: any
// number of threads may use them at a time.
typedef struct ${owner}_model ${owner}_model;

// Loads weights.bin, which is at `path`, into the current context.
int ${owner}_load(const char *path, ${owner}_model **model);
void ${owner}_unload(${owner}_model *model);

// Bytes of device memory that a call needs beyond its arrays.
size_t ${owner}_arena_bytes(void);

// Starts the kernels of the model on a stream of the current context, and does not wait.  Safe from many threads.
//
// `arena`: device memory that no other call uses meanwhile, from cuMemAlloc or aligned to 256 bytes; 0: the call
// allocates it, and waits for the results.
// Arrays are in device memory, C-contiguous, and do not overlap.
$arrays
$run

// Waits for the last call with this arena, which ran on this stream, and returns what it found in its arguments.
int ${owner}_wait(const ${owner}_model *model, CUdeviceptr arena, CUstream stream);

// The call as a graph, for cuGraphLaunch: each launch runs it on these arrays.  `stream` must not be the default one.
$capture
"""


def model_header(program: ModelProgram, *, cuda: bool) -> str:
    """The text of the file."""
    includes = ("cuda.h", "stddef.h") if cuda else ("stddef.h", "stdint.h")
    text = Template("".join((_HEAD, _CUDA if cuda else _PROCESSOR, _TAIL)))
    return text.substitute(
        title=comment(f"The model {program.name}."),
        owner=program.owner,
        OWNER=program.owner.upper(),
        includes="\n".join(f"#include <{name}>" for name in includes),
        arrays="\n".join(comment(line) for line in _arrays(program)),
        run=f"{run_prototype(program, cuda=cuda)};",
        capture=f"{capture_prototype(program)};",
    )


def run_prototype(program: ModelProgram, *, cuda: bool) -> str:
    """The head of the function that runs the model."""
    place = ("CUdeviceptr arena", "CUstream stream") if cuda else ("void *arena", "int64_t threads")
    first = f"const {program.owner}_model *model"
    return listed(f"int {program.owner}_run(", (first, *place, *_declared(program, cuda=cuda)), ")")


def capture_prototype(program: ModelProgram) -> str:
    """The head of the function that makes a graph of CUDA of it."""
    first = (f"const {program.owner}_model *model", "CUdeviceptr arena", "CUstream stream")
    return listed(f"int {program.owner}_capture(", (*first, *_declared(program, cuda=True), "CUgraphExec *graph"), ")")


def _declared(program: ModelProgram, *, cuda: bool) -> Iterator[str]:
    """The arrays of a call."""
    for one in program.inputs:
        yield f"CUdeviceptr {one.c_name}" if cuda else f"const {c_type(one.value.type)} *{one.c_name}"
    for one in program.outputs:
        yield f"CUdeviceptr {one.c_name}" if cuda else f"{c_type(one.value.type)} *{one.c_name}"


def _arrays(program: ModelProgram) -> Iterator[str]:
    yield from (f"  {_described(one)}, read" for one in program.inputs)
    yield from (f"  {_described(one)}, written" for one in program.outputs)


def _described(one: Parameter) -> str:
    return f"{one.c_name}: {one.value.type}({shape_text(one.value.shape)}), {one.bytes} bytes, `{one.name}`"
