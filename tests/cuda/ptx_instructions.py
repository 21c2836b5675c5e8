"""PTX instructions as statements of C, as the PTX ISA describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.cuda.ptx_groups import WIDE, fence, group_instruction
from tests.cuda.ptx_streams import box_copy, channel_instruction, registers_moved
from tests.cuda.ptx_types import BYTES, C_TYPES, FLOATS

if TYPE_CHECKING:
    from tests.cuda.ptx_function import Function

# The function, the modifiers with the type, and the operands; None for what is not known here.
_Make: TypeAlias = "Callable[[Function, Items[str], Items[str]], str | None]"
_COMPARISONS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMPARISONS_OF_UNSIGNED: Final = {**_COMPARISONS, "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_ROUNDINGS: Final = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_DIRECTIONS: Final = ("rz", "rm", "rp")
_FLOATING: Final = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "fma": "fma{f}({0}, {1}, {2})",
    "div": "{0} / {1}",
    "rcp": "1 / {0}",
    "sqrt": "sqrt{f}({0})",
    "rsqrt": "1 / sqrt{f}({0})",
    "neg": "-{0}",
    "abs": "fabs{f}({0})",
    "copysign": "copysign{f}({1}, {0})",
    "ex2": "exp2{f}({0})",
    "lg2": "log2{f}({0})",
    "min": "min_{type}({0}, {1})",
    "max": "max_{type}({0}, {1})",
    "min.NaN": "min_NaN_{type}({0}, {1})",
    "max.NaN": "max_NaN_{type}({0}, {1})",
}
_INTEGERS: Final = {
    # Sums and products wrap around, so they are those of unsigned integers.
    "add": "({c}){0} + ({c}){1}",
    "sub": "({c}){0} - ({c}){1}",
    "mul": "(uint64_t)({c}){0} * ({c}){1}",
    "mad": "(uint64_t)({c}){0} * ({c}){1} + ({c}){2}",
    "div": "{0} / {1}",
    "rem": "{0} % {1}",
    "min": "{0} < {1} ? {0} : {1}",
    "max": "{0} > {1} ? {0} : {1}",
    "abs": "{0} < 0 ? -({c}){0} : {0}",
    "neg": "-({c}){0}",
    "clz": "{0} ? __builtin_clzll({0}) - (64 - {bits}) : {bits}",
    "popc": "__builtin_popcountll({0})",
}
_UPDATES: Final = {
    "add": "old + {0}",
    "min": "old < {0} ? old : {0}",
    "max": "old > {0} ? old : {0}",
    "cas": "old == {0} ? {1} : old",
}
_CARRYING: Final = ("add", "addc", "sub", "subc", "mad", "madc")


def instruction(own: Function, words: Items[str], operands: Items[str]) -> str | None:
    """One instruction, its name and modifiers apart; None where it is not known here."""
    name, modes = words[0], words[1:]
    if name in _OTHERS:
        return _OTHERS[name](own, modes, operands)
    if modes and modes[-1] in FLOATS:
        return _floating(own, name, modes, operands)
    if name in _CARRYING and ("cc" in modes or name.endswith("c")):
        return _carrying(own, name, modes, operands)
    return _integer(own, name, modes, operands) if name in _INTEGERS else None


def _floating(own: Function, name: str, modes: Items[str], operands: Items[str]) -> str | None:
    type, flushes = modes[-1], "ftz" in modes
    values = [own.get(operand, type) for operand in operands[1:]]
    if flushes and type == "f32":
        values = [f"flushed({value})" for value in values]
    direction = next((mode for mode in modes if mode in _DIRECTIONS), None)
    if direction is not None:
        if name == "sub":
            name, values[1] = "add", f"-{values[1]}"
        if name not in ("add", "mul", "fma"):
            return None
        found = f"{name}_{direction}_{type}({', '.join([*values, '0'][:3])})"
    else:
        name = f"{name}.NaN" if "NaN" in modes else name
        if name not in _FLOATING:
            return None
        found = _FLOATING[name].format(*values, f="f" if type == "f32" else "", type=type)
    if flushes:
        # Approximations in double precision have the upper half of the bits only.
        found = f"flushed({found})" if type == "f32" else f"upper_half({found})"
    return own.set(operands[0], type, f"saturated({found})" if "sat" in modes else found)


def _integer(own: Function, name: str, modes: Items[str], operands: Items[str]) -> str:
    type = modes[-1]
    values = [own.signed(operand, type) for operand in operands[1:]]
    if "wide" in modes:
        wide = f"{type[0]}{int(type[1:]) * 2}"
        more = f" + {own.get(operands[3], wide)}" if name == "mad" else ""
        return own.set(operands[0], wide, f"({C_TYPES[wide]})({_product(values, type)}){more}")
    if "hi" in modes:
        more = f" + {values[2]}" if name == "mad" else ""
        return own.set(operands[0], type, f"({C_TYPES[type]})({_product(values, type)} >> {type[1:]}){more}")
    value = _INTEGERS[name].format(*values, c=C_TYPES[type], bits=type[1:])
    return own.set(operands[0], type, f"({C_TYPES[type]})({value})")


def _product(values: Items[str], type: str) -> str:
    """All bits of it."""
    wide = "__int128" if type[1:] == "64" else "int64_t"
    wide = wide if type[0] == "s" else f"unsigned {wide}" if wide == "__int128" else f"u{wide}"
    return f"(({wide})({values[0]}) * ({wide})({values[1]}))"


def _carrying(own: Function, name: str, modes: Items[str], operands: Items[str]) -> str:
    """Sums and differences that leave a carry, or begin with one."""
    type, wide = modes[-1], "unsigned __int128"
    c = C_TYPES[type]
    values = [own.get(operand, type) for operand in operands[1:]]
    if name.startswith("mad"):
        bits = f">> {type[1:]}" if "hi" in modes else ""
        values = [f"({c})({_product(values, type)} {bits})", values[2]]
    sign = "-" if name.startswith("sub") else "+"
    before = "carry" if name.endswith("c") else "0"
    sum = f"const {wide} sum = ({wide})({values[0]}) {sign} ({wide})({values[1]}) {sign} {before};"
    kept = f"carry = sum >> {type[1:]} & 1;" if "cc" in modes else ""
    return f"{sum} {kept} {own.set(operands[0], type, f'({c})sum')}"


def _logic(operator: str) -> _Make:
    def make(own: Function, modes: Items[str], operands: Items[str]) -> str:
        type = modes[-1]
        values = [own.get(operand, type) for operand in operands[1:]]
        value = f"~{values[0]}" if len(values) == 1 else f"{values[0]} {operator} {values[1]}"
        value = f"({value}) & 1" if type == "pred" else f"({C_TYPES[type]})({value})"
        return own.set(operands[0], type, value)

    return make


def _shift(own: Function, modes: Items[str], operands: Items[str], *, right: bool) -> str:
    type = modes[-1]
    value, count = own.signed(operands[1], type), own.get(operands[2], "u32")
    shifted = f"{value} >> {count}" if right else f"({C_TYPES[type]}){value} << {count}"
    beyond = f"({value} < 0 ? -1 : 0)" if right and type[0] == "s" else "0"
    return own.set(operands[0], type, f"({C_TYPES[type]})({count} >= {type[1:]} ? {beyond} : {shifted})")


def _move(own: Function, modes: Items[str], operands: Items[str]) -> str:
    """Vectors of registers are the parts of one, the lowest first."""
    type, (to, source) = modes[-1], operands
    whole = f"b{BYTES[type] * 8}"
    parts = (to if to[0] == "{" else source).strip("{}").split(",")
    part, bits = f"b{BYTES[type] * 8 // len(parts)}", BYTES[type] * 8 // len(parts)
    if to[0] == "{":
        sets = (own.set(p, part, f"({C_TYPES[part]})(all >> {bits * n})") for n, p in enumerate(parts))
        return f"const uint64_t all = {own.get(source, whole)}; {' '.join(sets)}"
    if source[0] == "{":
        all = " | ".join(f"(uint64_t){own.get(p, part)} << {bits * n}" for n, p in enumerate(parts))
        return own.set(to, whole, f"({C_TYPES[whole]})({all})")
    return own.set(to, type, own.get(source, type))


def _compare(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    how, type = modes[0], modes[-1]
    a, b = (own.signed(operand, type) for operand in operands[1:])
    if len(modes) > 2 and set(modes[1:-1]) != {"ftz"}:
        return None  # combined with another predicate
    if type not in FLOATS:
        return own.set(operands[0], "pred", f"{a} {_COMPARISONS_OF_UNSIGNED[how]} {b}")
    unordered = f"({a} != {a} || {b} != {b})"
    if how in ("nan", "num"):
        return own.set(operands[0], "pred", unordered if how == "nan" else f"!{unordered}")
    if how in _COMPARISONS:
        return own.set(operands[0], "pred", f"!{unordered} && {a} {_COMPARISONS[how]} {b}")
    return own.set(operands[0], "pred", f"{unordered} || {a} {_COMPARISONS[how.removesuffix('u')]} {b}")


def _select(own: Function, modes: Items[str], operands: Items[str]) -> str:
    a, b = (own.get(operand, modes[-1]) for operand in operands[1:3])
    return own.set(operands[0], modes[-1], f"{own.get(operands[3], 'pred')} ? {a} : {b}")


def _convert(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    *how, to, source = modes
    if to == "tf32":
        return own.set(operands[0], "b32", f"f32_to_tf32({own.get(operands[1], source)})") if how == ["rna"] else None
    value = own.signed(operands[1], source)
    rounding = next((_ROUNDINGS[mode] for mode in how if mode in _ROUNDINGS), None)
    halves = {("f32", "f16"): "half_to_f32", ("f16", "f32"): "f32_to_half", ("bf16", "f32"): "f32_to_bfloat"}
    if "f16" in (to, source) or "bf16" in (to, source):
        if (to, source) not in halves:
            return None
        return own.set(operands[0], to, f"{halves[to, source]}({value})")
    if to in FLOATS:
        found = f"({C_TYPES[to]})({value})" if rounding is None else f"({C_TYPES[to]}){rounding}({value})"
        return own.set(operands[0], to, f"saturated({found})" if "sat" in how else found)
    if source in FLOATS:
        if rounding is None or to[1:] not in ("32", "64"):
            return None
        return own.set(operands[0], to, f"({C_TYPES[to]})to_{to}({rounding}((double){value}))")
    # Registers may be wider than the type, and have its sign then.
    sign = f"(int{to[1:]}_t)" if to[0] == "s" else ""
    return own.set(operands[0], to, f"{sign}({C_TYPES[to]})({value})")


def _space(modes: Items[str]) -> str:
    return next((mode for mode in modes if mode in ("shared", "global", "local", "param")), "")


def _width(modes: Items[str]) -> int:
    return next((int(mode[1]) for mode in modes if mode in ("v2", "v4")), 1)


def _load(own: Function, modes: Items[str], operands: Items[str]) -> str:
    type, width = modes[-1], _width(modes)
    place = own.place(operands[1], _space(modes), BYTES[type] * width)
    # Registers may be wider than the type, and have its sign then.
    sign = f"(int{type[1:]}_t)" if type[0] == "s" else ""
    sets = (own.set(to, type, f"{sign}values[{n}]") for n, to in enumerate(operands[0].strip("{}").split(",")))
    return f"{C_TYPES[type]} values[{width}]; memcpy(values, {place}, sizeof values); {' '.join(sets)}"


def _store(own: Function, modes: Items[str], operands: Items[str]) -> str:
    type, width = modes[-1], _width(modes)
    place = own.place(operands[0], _space(modes), BYTES[type] * width)
    values = ", ".join(own.get(source, type) for source in operands[1].strip("{}").split(","))
    stored = f"const {C_TYPES[type]} values[{width}] = {{{values}}}; memcpy({place}, values, sizeof values);"
    return f"{stored} note_write({own.offset(operands[0])}, sizeof values);" if _space(modes) == "shared" else stored


def _update(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    """What nothing comes between, but other threads may come before."""
    operation, type = modes[-2:]
    place, *given = operands[-2:] if operation != "cas" else operands[-3:]
    if operation not in _UPDATES or any(mode not in ("global", "relaxed", "gpu") for mode in modes[:-2]):
        return None
    c = f"int{type[1:]}_t" if type[0] == "s" else C_TYPES[type]
    changed = _UPDATES[operation].format(*(own.signed(value, type) for value in given))
    kept = own.set(operands[0], type, "old") if operands[0] != place else ""
    return (
        f"let_others_run(); unsigned char *place = {own.place(place, 'global', BYTES[type])}; {c} old; "
        f"memcpy(&old, place, sizeof old); const {c} changed = {changed}; memcpy(place, &changed, sizeof old); {kept}"
    )


def _address(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    """Addresses of shared memory are counted from its beginning, all others are those of this machine."""
    return None if "shared" in modes else own.set(operands[0], modes[-1], own.get(operands[1], modes[-1]))


def _copy(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    match modes:
        case ["async", "bulk", *_]:
            return box_copy(own, modes, operands)
        case ["async", "commit_group"]:
            return "close_group();"
        case ["async", "wait_group"]:
            return f"wait_for_groups({operands[0]});"
        case ["async", "ca" | "cg", "shared", "global"]:
            to, source = (own.get(operand.strip("[] "), "u64") for operand in operands[:2])
            return f"begin_copy({to}, {source}, {operands[2]});"
    return None


def _barrier(_own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    return "give_way(AT_BARRIER);" if (modes, operands) == (["sync"], ["0"]) else None


def _shuffle(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    if modes != ["sync", "bfly", "b32"]:
        return None
    given = [own.get(operand, "u32") for operand in operands[1:]]
    return own.set(operands[0].split("|")[0], "b32", f"exchange({', '.join(given)})")


def _load_matrices(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    match modes:
        case ["sync", "aligned", "m8n8", "x2" | "x4" as count, *turned, "shared", "b16"] if turned in ([], ["trans"]):
            place, _, offset = operands[1].strip("[] ").replace(" ", "").partition("+")
            row = f"{own.get(place, 'u64')} + {offset or 0}"
            registers = operands[0].strip("{}").split(",")
            sets = " ".join(own.set(to, "b32", f"found[{n}]") for n, to in enumerate(registers))
            return f"uint32_t found[4]; load_matrices(found, {row}, {count[1]}, {int(bool(turned))}); {sets}"
    return None


def _multiply_matrices(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    match modes:
        case ["sync", "aligned", "m16n8k16", "row", "col", "f32", left, right, "f32"] if left == right and left in WIDE:
            type, called = "f32", f"multiply(sums, left, right, {WIDE[left]})"
        case ["sync", "aligned", "m16n8k8", "row", "col", "f32", "tf32", "tf32", "f32"]:
            type, called = "f32", "multiply_words(sums, left, right)"
        case ["sync", "aligned", "m16n8k32", "row", "col", "s32", "s8" | "u8" as left, "s8" | "u8" as right, "s32"]:
            type, called = "s32", f"multiply_bytes(sums, left, right, {int(left == 's8')}, {int(right == 's8')})"
        case _:
            return None
    to, *factors, sums = (operand.strip("{}").split(",") for operand in operands)
    given = [", ".join(own.get(register, "b32") for register in side) for side in factors]
    begun = ", ".join(own.get(register, type) for register in sums)
    sets = " ".join(own.set(register, type, f"sums[{n}]") for n, register in enumerate(to))
    return (
        f"{C_TYPES[type]} sums[4] = {{{begun}}}; const uint32_t left[4] = {{{given[0]}}}, right[2] = {{{given[1]}}}; "
        f"{called}; {sets}"
    )


def _call(own: Function, _modes: Items[str], operands: Items[str]) -> str:
    results, name, *arguments = operands
    places = [text.strip() for own in (results, *arguments) for text in own.strip("()").split(",")]
    return f"{own.name(name)}({', '.join(own.name(place) for place in places)});"


def _insert(own: Function, modes: Items[str], operands: Items[str]) -> str:
    source, into = (own.get(operand, modes[-1]) for operand in operands[1:3])
    position, length = (own.get(operand, "u32") for operand in operands[3:])
    value = f"({C_TYPES[modes[-1]]})inserted({source}, {into}, {position}, {length})"
    return own.set(operands[0], modes[-1], value)


def _permute(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    given = ", ".join(own.get(operand, "u32") for operand in operands[1:])
    return own.set(operands[0], "b32", f"permuted({given})") if list(modes) == ["b32"] else None


def _dot_product(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    """Of four bytes each, and one addend."""
    if len(modes) != 2 or any(mode not in ("s32", "u32") for mode in modes):
        return None
    left, right, addend = (own.get(operand, "u32") for operand in operands[1:])
    signs = (
        f"(int8_t)({value} >> 8 * n)" if mode == "s32" else f"(uint8_t)({value} >> 8 * n)"
        for mode, value in zip(modes, (left, right), strict=True)
    )
    sums = f"uint32_t sum = {addend}; for (int n = 0; n < 4; n += 1) sum += {' * '.join(signs)};"
    return f"{sums} {own.set(operands[0], 's32' if 's32' in modes else 'u32', 'sum')}"


_OTHERS: Final[Mapping[str, _Make]] = MappingProxyType(
    {
        "and": _logic("&"),
        "or": _logic("|"),
        "xor": _logic("^"),
        "not": _logic("~"),
        "shl": lambda own, modes, operands: _shift(own, modes, operands, right=False),
        "shr": lambda own, modes, operands: _shift(own, modes, operands, right=True),
        "mov": _move,
        "setp": _compare,
        "selp": _select,
        "cvt": _convert,
        "ld": _load,
        "st": _store,
        "atom": _update,
        "red": _update,
        "cvta": _address,
        "cp": _copy,
        "bar": _barrier,
        "shfl": _shuffle,
        "call": _call,
        "ldmatrix": _load_matrices,
        "mma": _multiply_matrices,
        "wgmma": group_instruction,
        "mbarrier": channel_instruction,
        "setmaxnreg": lambda _own, modes, operands: registers_moved(modes, operands),
        "fence": lambda _own, modes, _operands: fence(modes),
        "bfi": _insert,
        "prmt": _permute,
        "dp4a": _dot_product,
        "bra": lambda own, _modes, operands: f"goto {own.name(operands[0])};",
        "ret": lambda _own, _modes, _operands: "return;",
    }
)
