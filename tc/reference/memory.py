"""How much memory the oracle needs for a call, and how it keeps within a bound: known before it begins.

A plan says which temporaries are computed in parts, and how large windows are.  Values depend on it by the order of
additions in float64 at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from tc.base.counted import bytes_text
from tc.base.errors import TooLargeError
from tc.base.frozen import frozen
from tc.language.program.program import Read, Role, Statement, Tensor, walk
from tc.language.program.specialization import Layout, Specialization
from tc.reference.access import Box, volume
from tc.reference.bounded import numpy_type
from tc.reference.domain import pieces, positions
from tc.reference.order import lifetimes, reads_elsewhere, reads_of
from tc.reference.parts import PART_ELEMENTS, Parts, candidates, frame_without_tensors
from tc.reference.windows import MOST_SHARED, STEP, elements_shared, separate_forms

# Bytes of an element beside its value: its bound, and whether it is ambiguous.
_BOUND: Final = 8 + 1
# Of an element of a window whose elements several instances write, for the totals of a reduction.
TOTALS: Final = 5 * 8 + 4
# Elements of the arrays that a step computes with, for a reduction, and bytes for each of them.
_REDUCED_ELEMENTS: Final = 1 << 20
_STEP_BYTES: Final = 24 * 8

# Parts may be computed several times: so many times the instances of the program in all, at most.
_MOST_WORK: Final = 16


@frozen
class Need:
    """``bytes`` that the oracle needs beside the arguments; ``largest``: the tensor most of it is for, in words.

    ``held``: names of tensors that it has when it needs most, the largest first.
    """

    bytes: int
    largest: str
    held: tuple[str, ...] = ()

    def require(self, most: int, program: str) -> None:
        """TooLargeError, before anything is computed, if it is more than ``most`` bytes."""
        if self.bytes > most:
            raise TooLargeError(
                f"{program}: the oracle, which computes what is right, needs {bytes_text(self.bytes)} of memory for "
                f"these sizes, and may take {bytes_text(most)} (a quarter of what there is, unless you say otherwise); "
                f"choose smaller sizes, those of {self.largest} first"
            )


def need_of(specialization: Specialization, *, bounds: bool = True, parts: frozenset[str] = frozenset()) -> Need:
    """What the oracle needs for results and temporaries, while it has them, and for its steps.

    ``bounds``: as of ``evaluate``.  ``parts``: the temporaries that are computed in parts.
    """
    program, layouts = specialization.program, specialization.layouts
    spans = lifetimes(program, bounds=bounds, parts=parts)
    sizes = {
        tensor.name: layouts[tensor.name].size * _bytes_each(tensor, has_bounds=spans[tensor.name].bounds > 0)
        for tensor in program.tensors
        if tensor.role is not Role.INPUT and tensor.name not in parts
    }
    most = Need(0, "")
    for number, statement in enumerate(program.statements):
        if statement.target in parts:
            continue
        held = {n: s for n, s in sizes.items() if n in program.arguments or spans[n].first <= number <= spans[n].last}
        total = sum(held.values()) + _step_bytes(statement, layouts) + _parts_bytes(statement, specialization, parts)
        if reads_elsewhere(statement):
            total += sizes[statement.target]
        if total >= most.bytes:
            names = tuple(sorted(held, key=lambda name: (-held[name], name)))
            shape = " x ".join(map(str, layouts[names[0]].shape))
            most = Need(total, f"{names[0]} ({shape})" if shape else names[0], names)
    return most


def _step_bytes(statement: Statement, layouts: Mapping[str, Layout], part: int | None = None) -> int:
    """What a statement computes with at a time; ``part``: elements of its target that it is computed for, at most."""
    used = {statement.target, *(part.tensor for part in walk(statement.value) if isinstance(part, Read))}
    most = STEP if statement.reduction is None else _REDUCED_ELEMENTS
    step = min(max(layouts[name].size for name in used), most) * _STEP_BYTES
    if statement.reduction is None or separate_forms(statement.subscripts, positions(statement)) is not None:
        return step
    size = layouts[statement.target].size
    return step + (elements_shared(size) if part is None else min(size, part)) * TOTALS


def _parts_bytes(statement: Statement, specialization: Specialization, parts: frozenset[str]) -> int:
    """What a statement has of temporaries in parts, and what it takes to compute them."""
    if not any(read.tensor in parts for read in reads_of(statement)):
        return 0
    program, layouts = specialization.program, specialization.layouts
    tensors = [tensor for tensor in program.tensors if tensor.name in parts]
    held = min(sum(layouts[tensor.name].size for tensor in tensors), PART_ELEMENTS) * (8 + _BOUND)
    return held + max(_step_bytes(s, layouts, PART_ELEMENTS) for s in program.statements if s.target in parts)


def _bytes_each(tensor: Tensor, *, has_bounds: bool) -> int:
    return numpy_type(tensor.type).itemsize + (_BOUND if has_bounds else 0)


@frozen
class Plan:
    """``parts``: the temporaries that are computed in parts.  ``shared``: as of ``windows``.

    ``bytes``: what it takes at most, but for windows that take what is left.
    """

    parts: frozenset[str] = frozenset()
    shared: int = MOST_SHARED
    bytes: int = 0


def plan_within(specialization: Specialization, most: int, *, bounds: bool = True) -> Plan:
    """The plan that takes at most so many bytes beside the arguments; TooLargeError where there is none.

    ``bounds``: as of ``evaluate``.
    """
    chosen: frozenset[str] = frozenset()
    need = least = need_of(specialization, bounds=bounds)
    left = candidates(specialization.program) if need.bytes > most else chosen
    while need.bytes > most:
        # The largest of those that are there when most memory is needed.  Alone it may gain nothing: what it is
        # computed from is there for longer, until that is computed in parts, too.
        found = next((name for name in need.held if name in left), None)
        if found is None:
            break
        left -= {found}
        if _is_worth_it(specialization, chosen | {found}):
            chosen |= {found}
            need = need_of(specialization, bounds=bounds, parts=chosen)
            least = min(need, least, key=lambda need: need.bytes)
    least.require(most, specialization.program.name)
    return Plan(chosen, MOST_SHARED + (most - need.bytes) // TOTALS, need.bytes)


def _is_worth_it(specialization: Specialization, names: frozenset[str]) -> bool:
    """Whether what the steps of statements need of the temporaries is small, and not computed too many times."""
    program = specialization.program
    parts = Parts(program, {name: layout.shape for name, layout in specialization.layouts.items()}, names)
    once = again = 0
    for statement in program.statements:
        box = frame_without_tensors(program, statement).box
        once += volume(box)
        if statement.target not in names and volume(box) and parts.needed(statement, box):
            fits = partial(_fits, parts, statement)
            step = next(pieces(box, parts.iterators(statement), fits))
            if not fits(step):
                return False
            again += parts.work(parts.needed(statement, step)) * -(-volume(box) // volume(step))
    return again <= _MOST_WORK * once


def _fits(parts: Parts, statement: Statement, box: Box) -> bool:
    return volume(box) <= STEP and parts.fit(statement, box)
