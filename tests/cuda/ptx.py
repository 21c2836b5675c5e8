"""PTX as C: what NVRTC makes of our CUDA runs on this machine, thread by thread, statement by statement.

Registers become variables, instructions become statements with the meaning that the PTX ISA gives them; ``ptx.h`` has
the threads, the memory and what C has no operator for.  It knows what our kernels use, and refuses all else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cuda.ptx_function import DECLARED_MEMORY, NAME, Function, Memory, PtxError, c_name
from tests.cuda.ptx_types import BYTES, C_TYPES

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE: Final = re.compile(r"^\s*\.(version|target|address_size)[^\n]*$", re.MULTILINE)
_HEAD: Final = re.compile(rf"(?:\.visible )?\.(entry|func)\s*(?:\((.*?)\))?\s*({NAME})\s*\((.*?)\).*$", re.DOTALL)


# Where the constant memory of a kernel has its parameters: the attribute PARAM_CBANK in what NVRTC makes for sm_90.
_PARAMETERS_FROM: Final = 0x210


@dataclass(frozen=True)
class Parameter:
    """``offset``: where a kernel finds it among its arguments, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Translation:
    """The C source of a library: ``ptx_run(kernel, sizes, arguments, ranges, count)`` runs a kernel by its number.

    What it returns says what went wrong, or nothing.  ``kernels``: parameters by name, in the order of the numbers.
    """

    text: str
    kernels: dict[str, tuple[Parameter, ...]]


def translated(text: str) -> Translation:
    """PtxError where it says what is not known here."""
    module = _Module()
    for head, body in _pieces(_DIRECTIVE.sub("", _COMMENT.sub("", text))):
        if body is None:
            module.declare(head)
        else:
            module.define(head, body)
    return Translation(module.source(), module.kernels)


def _pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Declarations, and functions with their bodies."""
    position = 0
    while (match := re.compile(r"[;{]").search(text, position)) is not None:
        head = text[position : match.start()]
        if match[0] == ";" or head.rstrip().endswith("="):
            end = text.index(";", match.start())
            yield text[position:end].strip(), None
            position = end + 1
            continue
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield head.strip(), text[match.end() : end - 1]
        position = end


def _declared(text: str) -> re.Match[str] | None:
    return DECLARED_MEMORY.match(" ".join(text.split()))


def _places(declared: Iterable[re.Match[str]]) -> Iterator[Parameter]:
    """Where the assembler puts parameters: their addresses are aligned, and not only their offsets.

    The attributes KPARAM_INFO in what NVRTC makes for sm_90 say so.
    """
    address = _PARAMETERS_FROM
    for own in declared:
        alignment = int(own[2] or BYTES[own[3]])
        address = -(-address // alignment) * alignment
        size = BYTES[own[3]] * int(own[5] or 1)
        yield Parameter(address - _PARAMETERS_FROM, size)
        address += size


@dataclass
class _Module:
    """Collects functions, and what they need of each other."""

    memory: Memory = field(default_factory=Memory)
    constants: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)

    def source(self) -> str:
        headers = (
            Path(__file__).with_name(name).read_text(encoding="utf-8")
            for name in ("ptx.h", "ptx_groups.h", "ptx_streams.h")
        )
        places = " ".join(f"allow((uintptr_t){name}, (uintptr_t){name} + sizeof {name});" for name in self.constants)
        parts = [
            *headers,
            f"enum {{ SHARED_END = {self.memory.shared_end} }};",
            *self.constants.values(),
            f"static void allow_constants(void) {{ {places} }}",
            *(f"{function.split(' {', 1)[0]};" for function in self.functions),
            *self.functions,
            f"static body *const kernels[] = {{{', '.join(f'kernel_{name}' for name in self.kernels)}}};",
            "const char *ptx_run(int kernel, const uint32_t *sizes, const unsigned char *arguments,",
            "                    const uint64_t *ranges, int count) {",
            "  return run_kernel(kernels[kernel], sizes, SHARED_END, arguments, ranges, count);",
            "}",
        ]
        return "\n".join([*parts, ""])

    def declare(self, head: str) -> None:
        """Memory outside of functions; their prototypes are known from themselves."""
        match = _declared(head)
        if match is None:
            return
        space, align, type, name, count, content = match.groups()
        if space == "shared":
            self.memory.share(name, type, count, align)
        elif space in ("global", "const"):
            place = f"{c_name(name)}[] __attribute__((aligned({align or BYTES[type]})))"
            self.constants[c_name(name)] = f"static const {C_TYPES[type]} {place} = {content or '{0}'};"

    def define(self, head: str, body: str) -> None:
        match = _HEAD.match(head)
        if match is None:
            raise PtxError(head)
        sort, results, name, parameters = match.groups()
        declared = [own for text in parameters.split(",") if (own := _declared(text)) is not None]
        lines: list[str] = []
        if sort == "entry":
            header = f"static void kernel_{name}(const unsigned char *arguments)"
            self.kernels[name] = tuple(_places(declared))
            for own, place in zip(declared, self.kernels[name], strict=True):
                lines.append(f"const unsigned char *{c_name(own[4])} = arguments + {place.offset};")
        else:
            returned = [own for text in (results or "").split(",") if (own := _declared(text)) is not None]
            places = ", ".join(f"unsigned char *{c_name(own[4])}" for own in (*returned, *declared))
            header = f"static void {c_name(name)}({places})"
        self.functions.append("\n".join([f"{header} {{", *lines, *Function(self.memory).lines(body), "}"]))
