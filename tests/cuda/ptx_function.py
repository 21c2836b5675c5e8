"""The body of a PTX function as C: its statements, scopes and operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.cuda.ptx_instructions import instruction
from tests.cuda.ptx_types import BYTES, C_TYPES, FLOATS

NAME: Final = r"[\w$%.]+"
DECLARED_MEMORY: Final = re.compile(
    r"(?:\.extern )?(?:\.visible )?\.(shared|global|const|local|param)(?: \.align (\d+))? "
    rf"\.(\w+) ({NAME})(?:\[(\d*)\])?(?: = (.*))?$",
    re.DOTALL,
)
_REGISTERS: Final = re.compile(r"\.reg \.(\w+) ([^;]+)$")
# Vectors of registers have braces, too.
_ENDS: Final = re.compile(r"(;|\n\s*\{(?=[\s\n])|\n\s*\}|\$\w+:)")
_INDICES: Final = {"tid": "self->index", "ctaid": "block_index", "ntid": "block_size", "nctaid": "grid_size"}
_NUMBER: Final = re.compile(r"-?(0x[0-9A-Fa-f]+|\d+)U?")
_FLOAT_BITS: Final = re.compile(r"0[fFdD]([0-9A-Fa-f]+)")


class PtxError(Exception):
    """PTX that is not known here."""


def c_name(name: str) -> str:
    """A name as C allows it."""
    return "v_" + re.sub(r"\W", "_", name)


@dataclass
class Memory:
    """What the threads of a block share: where names begin, and what has no size yet lies behind all else."""

    shared: dict[str, str] = field(default_factory=dict)
    shared_bytes: int = 0
    alignment: int = 64

    @property
    def shared_end(self) -> int:
        return -(-self.shared_bytes // self.alignment) * self.alignment

    def share(self, name: str, type: str, count: str | None, align: str | None) -> None:
        if count == "":
            self.shared[name] = "SHARED_END"
            self.alignment = max(self.alignment, int(align or 1))
            return
        begin = -(-self.shared_bytes // int(align or 16)) * int(align or 16)
        self.shared[name] = str(begin)
        self.shared_bytes = begin + BYTES[type] * int(count or 1)


class Function:
    """One function: ``registers`` by their names, with the types that they are declared with."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.registers: dict[str, str] = {}
        self.places: set[str] = set()

    def name(self, name: str) -> str:
        """Of a variable or a label."""
        return c_name(name)

    def lines(self, text: str) -> list[str]:
        return ["uint64_t carry = 0;", *(line for own in _statements(text) for line in self._statement(own))]

    def _statement(self, text: str) -> list[str]:
        if text in "{}":
            return [text]
        if text.endswith(":"):
            return [f"{c_name(text[:-1])}:;"]
        if (match := _REGISTERS.match(text)) is not None:
            return self._declare(match[1], match[2])
        if (match := DECLARED_MEMORY.match(text)) is not None:
            return self._reserve(match)
        if text.startswith((".pragma", ".loc")):
            return []
        guard = ""
        if (match := re.match(r"@(!?%?\w+) ", text)) is not None:
            guard, text = f"if ({self.get(match[1], 'pred')}) ", text[match.end() :]
        name, _, rest = text.partition(" ")
        done = instruction(self, name.split("."), _operands(rest))
        if done is None:
            raise PtxError(text)
        return [f"{guard}{{ {done} }}"]

    def _declare(self, type: str, names: str) -> list[str]:
        found: list[str] = []
        for name in names.split(","):
            match = re.fullmatch(r"(%?\w+)<(\d+)>", name.strip())
            found += [name.strip()] if match is None else [f"{match[1]}{n}" for n in range(int(match[2]))]
        self.registers |= dict.fromkeys(found, type)
        return [f"{C_TYPES[type]} {c_name(own)} = 0;" for own in found]

    def _reserve(self, match: re.Match[str]) -> list[str]:
        space, align, type, name, count, _ = match.groups()
        if space == "shared":
            self.memory.share(name, type, count, align)
            return []
        self.places.add(name)
        return [f"unsigned char {c_name(name)}[{BYTES[type] * int(count or 1)}] __attribute__((aligned(16)));"]

    # --- operands

    def get(self, operand: str, type: str) -> str:
        """The value of an operand: a float, or an unsigned integer of that size."""
        operand = operand.strip()
        if operand.startswith("!"):
            return f"!{self.get(operand[1:], type)}"
        if operand in self.registers:
            return _as(type, self.registers[operand], c_name(operand))
        if (bits := _FLOAT_BITS.fullmatch(operand)) is not None:
            return f"as_{type}(0x{bits[1]}ull)" if type in FLOATS else f"0x{bits[1]}ull"
        if _NUMBER.fullmatch(operand):
            return f"({C_TYPES[type]}){operand.rstrip('U')}ll"
        if (match := re.fullmatch(r"%(\w+)\.([xyz])", operand)) is not None and match[1] in _INDICES:
            return f"{_INDICES[match[1]]}['{match[2]}' - 'x']"
        if operand in self.memory.shared:
            return f"({C_TYPES[type]}){self.memory.shared[operand]}"
        return f"({C_TYPES[type]})(uintptr_t){c_name(operand)}"

    def signed(self, operand: str, type: str) -> str:
        """The value with its sign, if the type has one."""
        value = self.get(operand, type)
        return f"(int{type[1:]}_t)({value})" if type[0] == "s" else value

    def set(self, operand: str, type: str, value: str) -> str:
        """Puts a value of a type into a register."""
        operand = operand.strip()
        if operand not in self.registers:
            if operand != "_":
                raise PtxError(operand)
            return f"(void)({value});"
        own = self.registers[operand]
        if own in FLOATS and type not in FLOATS:
            value = f"as_{own}(({C_TYPES[f'b{BYTES[own] * 8}']})({value}))"
        elif type in FLOATS and own not in FLOATS:
            value = f"bits_{type}({value})"
        return f"{c_name(operand)} = {value};"

    def address(self, operand: str) -> str:
        """Where a register is."""
        return f"&{c_name(operand.strip())}"

    def offset(self, operand: str) -> str:
        """An address as a number."""
        name, _, offset = operand.strip("[] ").replace(" ", "").partition("+")
        return f"({self.get(name, 'u64')} + (int64_t){offset or 0})"

    def place(self, operand: str, space: str, bytes: int) -> str:
        """A pointer to so many bytes of memory."""
        name, _, offset = operand.strip("[] ").replace(" ", "").partition("+")
        if space == "param" or name in self.places:
            return f"({c_name(name)} + {offset or 0})"
        if space not in ("shared", "global", "local"):
            raise PtxError(f"{space} {operand}")
        return f"in_{space}({self.offset(operand)}, {bytes})"


def _as(type: str, own: str, value: str) -> str:
    """The value of a register of one type as another one of that size."""
    if own == type or type == "pred" or (own in FLOATS and type in FLOATS):
        return value
    if type in FLOATS:
        return f"as_{type}({value})"
    return f"({C_TYPES[type]})bits_{own}({value})" if own in FLOATS else f"({C_TYPES[type]}){value}"


def _statements(text: str) -> Iterator[str]:
    """Statements without their semicolons, labels, and braces that open or close a scope."""
    for part in _ENDS.split(text):
        statement = " ".join(part.split())
        if statement and statement != ";":
            yield statement


def _operands(text: str) -> list[str]:
    """Operands, of which vectors are one each."""
    return [part.strip() for part in re.findall(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|[^,{}\[\]()]+", text) if part.strip()]
