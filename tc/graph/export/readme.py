"""``README.md``: what is in the folder of an exported model, and how a program calls it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Template
from typing import Final

from tc.base.counted import bytes_text, counted
from tc.graph.export.program import ModelProgram, Parameter
from tc.graph.ir.sizes import shape_text

_LONGEST: Final = 200
_HARMFUL: Final = re.compile(r"[^ -~]|[`|\\<>]")
_README: Final = """\
# The model $name

Exported by Tensor Comprehensions: $kernels in $calls, $weights of weights. It runs without Python.
Target: `$target`.

| array | | type and shape | bytes | in the model |
|---|---|---|---|---|
$arrays

Arrays are C-contiguous. Elements of float16 and bfloat16 are their 16 bits, those of bool are bytes.

## Building and calling

$building

`main.c` is a program that calls the model on files of raw elements. All of `model.h`:

| | |
|---|---|
$interface

A model that is loaded is never written to, and there are no global variables that change: many threads may call it at a
time, each with an arena of its own. Folders of other models fit into the same program.

## Files

| | |
|---|---|
| `model.h`, `model.c` | the function, and what goes with it |
| `weights.bin` | the constants; `sha256sum`: `$digest` |
| `export.json` | arrays, offsets of the constants, and files, for programs |
| `kernels.h`, `kernels.c` | what each kernel computes and is given; the same as a table |
$files
"""
_PROCESSOR_BUILDING: Final = """\
```console
make
cc program.c -I. lib$owner.a -lm
cc program.c -I. lib${owner}_threads.a -lm -pthread
make main && ./main weights.bin 2 $arrays
```

With `lib$owner.a`, which needs nothing but the C library, calls run on one thread; with `lib${owner}_threads.a`
(Linux) on as many as they are told.

Kernels are made for processors with the instructions of the target: on others, the program stops. They must be compiled
with the options in the `Makefile`, which keep IEEE values; never add `-ffast-math`."""
_CUDA_BUILDING: Final = """\
```console
make CUDA=/usr/local/cuda
make main && ./main weights.bin $arrays
```

`lib$owner.a` needs the driver alone (`-lcuda`). `make cubins` compiles the kernels anew, by NVRTC.

The kernels are in `.cu` files, and compiled in `.cubin` files, which are part of the library. They run on devices of
the target's architecture."""
_PROCESSOR_FILES: Final = """\
| `${owner}_*.c` | the kernels |
| `call.h`, `call_plain.c` | what runs a kernel, on one thread |
| `call_threads.c`, `pool.h`, `pool.c`, `workspace.h` | the same on many threads |
| `weights.h`, `files.h` | what maps the weights; what reads the files of `main.c` |"""
_CUDA_FILES: Final = """\
| `${owner}_*.cu`, `${owner}_*.cubin` | the kernels as sources and compiled |
| `cubins.s` | puts them into the library |
| `compile.c` | compiles a source by NVRTC |
| `call.h`, `pool.h`, `launch.h` | types of the table; what launches a kernel |
| `weights.h`, `files.h` | what maps the weights; what reads the files of `main.c` |"""
_PROCESSOR_INTERFACE: Final = """\
| `${owner}_load`, `${owner}_unload` | map `weights.bin`, and let it go |
| `${owner}_run` | runs the model; the arena is the caller's (`${owner}_arena_bytes`, $arena), or NULL |
| `${owner}_error` | the text for what a function returned other than 0 |"""
_CUDA_INTERFACE: Final = """\
| `${owner}_load`, `${owner}_unload` | load weights and kernels into the current context, and let them go |
| `${owner}_run` | starts the kernels on a stream; the arena is the caller's (`${owner}_arena_bytes`, $arena), or 0 |
| `${owner}_wait` | waits for a call, and says what it found, as an index that is out of range |
| `${owner}_capture` | the call as a CUDA graph |
| `${owner}_error` | the text for what a function returned other than 0 |"""


def readme(program: ModelProgram, target: str, *, cuda: bool) -> str:
    """The text of the file."""
    arrays = [*program.inputs, *program.outputs]
    parts = {
        "building": _CUDA_BUILDING if cuda else _PROCESSOR_BUILDING,
        "interface": _CUDA_INTERFACE if cuda else _PROCESSOR_INTERFACE,
        "files": _CUDA_FILES if cuda else _PROCESSOR_FILES,
    }
    names = " ".join(f"{one.c_name}.bin" for one in arrays)
    values = {"owner": program.owner, "arena": bytes_text(program.arena), "arrays": names}
    return Template(_README).substitute(
        name=_code(program.name),
        target=target,
        kernels=counted(len(program.kernels), "kernel"),
        calls=counted(len(program.launches), "call"),
        weights=bytes_text(program.weights.size),
        digest=program.weights.sha256,
        arrays="\n".join((*_rows(program.inputs, "read"), *_rows(program.outputs, "written"))),
        **{name: Template(text).substitute(values) for name, text in parts.items()},
    )


def _rows(parameters: Iterable[Parameter], what: str) -> Iterable[str]:
    for one in parameters:
        value = one.value
        yield f"| `{one.c_name}` | {what} | {value.type}({shape_text(value.shape)}) | {one.bytes} | {_code(one.name)} |"


def _code(name: str) -> str:
    """A name of the model, as code; what could end that is made harmless."""
    return f"`{_HARMFUL.sub('?', name[:_LONGEST]) or ' '}`"
