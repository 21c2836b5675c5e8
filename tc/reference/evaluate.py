"""The oracle: what a specialized program means, with a bound on what any correct kernel may compute instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tc.base.dots import Products
from tc.base.errors import ArgumentError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.program import Cast, Expression, Reduction, Role, Tensor, iterators_in
from tc.language.program.specialization import Layout, Specialization
from tc.language.program.terms import float32_term, is_product_of_two
from tc.language.program.written_elements import is_scatter
from tc.reference import decisions
from tc.reference.access import Box, Window, extents, volume, whole_window
from tc.reference.accumulate import Accumulator, FloatSum, Slices, accumulator
from tc.reference.bounded import (
    CERTAIN,
    EXACT,
    Array,
    BoolArray,
    Bounded,
    FloatArray,
    collapse,
    constant,
    numpy_type,
    settle,
)
from tc.reference.contract import absorb_product, as_grid, factors_of, largest_intermediate
from tc.reference.domain import (
    bounding_box,
    fills_box,
    initialized,
    instances,
    pieces,
    positions,
    ranging_positions,
    within_ranges,
)
from tc.reference.expressions import ALWAYS, Frame, is_product, unknown
from tc.reference.expressions import evaluate as evaluate_expression
from tc.reference.following import Following
from tc.reference.instructions import Instructions, instructions_of
from tc.reference.memory import Plan
from tc.reference.order import block_ranges, in_order, lifetimes, reads_elsewhere
from tc.reference.parts import Parts
from tc.reference.placement import Placement, doubtful, placement
from tc.reference.running import running, running_placement
from tc.reference.windows import STEP, reaches, restricted, windows

ElementType = TypeVar("ElementType", bound=np.generic)

# Elements of the arrays that one step of a contraction computes with: a dozen of them stay below 256 MB.
_CONTRACTION_STEP = 1 << 21


@frozen
class Result:
    """What a tensor must hold after a call.

    ``values``: the declared type for integers and booleans; float64, not rounded, for floating types.
    ``error``: per element, how far a correct kernel may be from it; ``inf`` where anything is correct.
    ``ambiguous``: a comparison, a conversion to integer or an overflow lay within its bound, and all its outcomes
    are accepted.
    """

    type: ScalarType
    values: Array
    error: FloatArray
    ambiguous: BoolArray


def evaluate(
    specialization: Specialization,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, bool | int | float] | None = None,
    *,
    check_indices: bool = True,
    temporaries: bool = False,
    bounds: bool = True,
    plan: Plan | None = None,
    given: Mapping[str, Array] | None = None,
    products: Products = Products.EXACT,
) -> dict[str, Result]:
    """The results of a call, by name of the output or in-out tensor, in the order in which callers get them.

    ``arrays``: the input and in-out tensors, in their declared types and shapes.  ``scalars``: the scalar arguments.
    ``check_indices``: an index that leaves its tensor is an ArgumentError; otherwise anything may be read there.
    ``temporaries``: give those too, behind the results.  ``bounds``: whether errors and ambiguity of the results are
    asked for, which take as much memory as their values; without, they are arrays of zeros without memory of their own.
    ``plan``: how to keep within some memory (``tc.reference.memory``), without ``temporaries``.  ``given``: the results
    of a kernel, which steps of blocks then go on from (``tc.reference.following``).  ``products``: how
    kernels may round.
    """
    program, layouts = specialization.program, specialization.layouts
    following = Following({}, {}) if given is None else Following.of(specialization, given)
    plan = Plan() if plan is None else plan
    spans = lifetimes(program, bounds=bounds, temporaries=temporaries, parts=plan.parts)
    parts = Parts(program, {name: layout.shape for name, layout in layouts.items()}, plan.parts)
    with np.errstate(all="ignore"):
        whole = (tensor for tensor in program.tensors if tensor.name not in plan.parts)
        tensors = {t.name: _initial(t, layouts[t.name], arrays, program.name) for t in whole}
        values = {s.name: constant(_scalar(s.name, scalars or {}, program.name), s.type) for s in program.scalars}
        for numbers in dict.fromkeys(block_ranges(program)):
            for statement in in_order(program, numbers):
                if statement.target in plan.parts:
                    continue
                frame = Frame(program, statement, positions(statement), (), tensors, values, check_indices)
                keeps = numbers.start < spans[statement.target].bounds
                window = whole_window(layouts[statement.target].shape)
                after = _run(_Step(frame, window, layouts, parts, plan.shared, products), keeps_bounds=keeps)
                tensors[statement.target] = following.after(statement, after, layouts[statement.target].type)
            for name in [n for n in tensors if spans[n].last < numbers.stop]:
                del tensors[name]
        further = [t.name for t in program.tensors if temporaries and t.role is Role.TEMPORARY]
        wanted = (*program.results, *further)
        found = {name: following.results(name, tensors.pop(name)) for name in dict.fromkeys(wanted)}
        return {name: _result(tensor, program.tensor(name).type, bounds) for name, tensor in found.items()}


def _initial(tensor: Tensor, layout: Layout, arrays: Mapping[str, Array], program: str) -> Bounded:
    """The contents before the first statement: given, or unknown."""
    if tensor.role in (Role.OUTPUT, Role.TEMPORARY):
        return _unwritten(layout.shape, layout.type)
    if tensor.name not in arrays:
        raise ArgumentError(f"{program}: argument {tensor.name} is missing; pass an array of shape {layout.shape}")
    array = np.asarray(arrays[tensor.name])
    if array.shape != layout.shape or array.dtype.name != layout.type.value:
        raise ArgumentError(
            f"{program}: argument {tensor.name} must be {layout.type} of shape {layout.shape}, "
            f"got {array.dtype.name} of shape {array.shape}"
        )
    if layout.type.is_half and layout.type.itemsize == 1:  # NumPy has no views of some of these
        array = array.astype(np.float32)
    # Arguments are only read, and results that come in are written to.
    return Bounded(array if tensor.role is Role.INPUT else array.astype(numpy_type(layout.type)))


def _unwritten(shape: tuple[int, ...], type: ScalarType) -> Bounded:
    return Bounded(np.zeros(shape, numpy_type(type)), np.asarray(unknown(type)), ALWAYS)


def _scalar(name: str, scalars: Mapping[str, bool | int | float], program: str) -> bool | int | float:
    if name not in scalars:
        raise ArgumentError(f"{program}: scalar argument {name} is missing; pass its value")
    return scalars[name]


def _result(tensor: Bounded, type: ScalarType, bounds: bool) -> Result:
    shape = tensor.value.shape
    if not bounds:
        return Result(type, tensor.value, np.broadcast_to(EXACT, shape), np.broadcast_to(CERTAIN, shape))
    whole = _Whole.of(tensor)
    ambiguous, error = whole.ambiguous.reshape(-1), whole.error.reshape(-1)
    for start in range(0, error.size, STEP):
        part = slice(start, start + STEP)
        ambiguous[part] |= np.isinf(error[part])
    return Result(type, whole.value, whole.error, whole.ambiguous)


# --- statements ----------------------------------------------------------------------------------------------


@frozen
class _Step:
    """A statement over the box of the frame, and the window of its target for which there are arrays.

    ``shared``: as of ``windows``.
    """

    frame: Frame
    window: Window
    layouts: Mapping[str, Layout]
    parts: Parts
    shared: int
    products: Products

    @property
    def instructions(self) -> Instructions | None:
        """Those that may add up the terms."""
        return instructions_of(self.frame.statement.value, self.products)

    @property
    def type(self) -> ScalarType:
        """Of the target."""
        return self.layouts[self.frame.statement.target].type

    def fits(self, box: Box) -> bool:
        """Whether it may be computed at a time."""
        return volume(box) <= STEP and self.parts.fit(self.frame.statement, box)

    def within(self, window: Window) -> _Step:
        """The same for a part of the window."""
        return replace(self, frame=restricted(window, self.frame), window=window)

    def windows(self) -> Sequence[Window]:
        """Windows of the target whose totals are computed one after the other."""
        if self.window.shape != self.window.whole:
            return [self.window]
        statement = self.frame.statement
        return windows(self.frame, self.window.whole, self.shared, self.parts.iterators(statement))

    def pieces(self, first: frozenset[int], fits: Callable[[Box], bool]) -> Iterator[Frame]:
        """Frames over parts of the box, with what they need of temporaries in parts.

        Boxes are cut along ``first``, unless those are in the way.
        """
        first = self.parts.iterators(self.frame.statement) or ranging_positions(self.frame) or first
        inside = partial(within_ranges, self.frame)
        boxes = pieces(self.frame.box, first, lambda box: fits(inside(box)), partial(reaches, self.window, self.frame))
        for box in map(inside, boxes):
            if volume(box):
                yield self._supplied(replace(self.frame, box=box))

    def _supplied(self, frame: Frame) -> Frame:
        needed = self.parts.needed(frame.statement, frame.box)
        if not needed:
            return frame
        held: dict[str, list[tuple[Window, Bounded]]] = {}
        frame = replace(frame, parts=held)
        for name in (name for name in self.parts.writers if name in needed):
            held[name] = [(window, self._part(frame, name, window)) for window in needed[name]]
        return frame

    def _part(self, frame: Frame, name: str, window: Window) -> Bounded:
        """Some elements of a temporary in parts, computed from what the frame has."""
        found = _unwritten(window.shape, self.layouts[name].type)
        for writer in self.parts.writers[name]:
            tensors = {**frame.tensors, name: found}
            inner = replace(frame, statement=writer, positions=positions(writer), tensors=tensors)
            step = replace(self, frame=inner, window=window, parts=replace(self.parts, names=frozenset()))
            found = _run(step, keeps_bounds=True)
        return found


def _run(step: _Step, *, keeps_bounds: bool) -> Bounded:
    """The target after the statement, in the same memory; ``keeps_bounds``: whether anybody asks for its bounds."""
    frame = replace(step.frame, box=bounding_box(step.frame))
    before = frame.tensors[frame.statement.target]
    if reads_elsewhere(frame.statement):
        before = Bounded(np.array(before.value), np.array(before.error), np.array(before.ambiguous))
    after = _Whole.of(before) if keeps_bounds else _Whole.without_bounds(before)
    step = replace(step, frame=restricted(step.window, frame))
    reduction = frame.statement.reduction
    if reduction is None:
        _assign(step, after)
    else:
        _reduce(step, reduction, before, after)
    return after.compact() if keeps_bounds else Bounded(after.value)


@frozen
class _Whole:
    """Arrays that are written to: of a tensor's shape, or, without bounds, its values alone.

    Those of a tensor that is written already are its own: a statement reads of its target what it then replaces.
    """

    value: Array
    error: FloatArray
    ambiguous: BoolArray

    @staticmethod
    def of(tensor: Bounded) -> _Whole:
        shape = tensor.value.shape
        return _Whole(tensor.value, _own(tensor.error, shape), _own(tensor.ambiguous, shape))

    @staticmethod
    def without_bounds(tensor: Bounded) -> _Whole:
        return _Whole(tensor.value, EXACT, CERTAIN)

    @property
    def has_bounds(self) -> bool:
        return self.error is not EXACT

    def assign(self, terms: Bounded, place: Placement) -> None:
        """Writes terms over a box."""
        place.assign(self.value, terms.value)
        if self.has_bounds:
            place.assign(self.error, terms.error)
            place.assign(self.ambiguous, terms.ambiguous)

    def replace(self, part: Slices, found: Bounded, changed: BoolArray) -> None:
        """Writes the elements of a part that change."""
        np.copyto(self.value[part], found.value, where=changed)
        if self.has_bounds:
            np.copyto(self.error[part], found.error, where=changed)
            np.copyto(self.ambiguous[part], found.ambiguous, where=changed)

    def compact(self) -> Bounded:
        """The same without arrays of zeros, so that what is computed from exact values stays cheap."""
        return Bounded(
            self.value,
            self.error if self.error.any() else EXACT,
            self.ambiguous if self.ambiguous.any() else CERTAIN,
        )


def _own(array: npt.NDArray[ElementType], shape: tuple[int, ...]) -> npt.NDArray[ElementType]:
    """The array itself if it has the shape and can be written to, else one that does."""
    if array.shape == shape and array.flags.writeable:
        return array
    if array.ndim == 0 and not array:
        return np.zeros(shape, array.dtype)  # takes no memory before it is written to
    return np.array(np.broadcast_to(array, shape))


def _require_distinct(place: Placement, seen: set[int], frame: Frame) -> None:
    """ArgumentError where an element is written that was written before."""
    assert place.elements is not None
    written = place.elements.flat.reshape(-1).tolist()
    before = len(seen)
    seen.update(written)
    if len(seen) < before + len(written):
        statement = frame.statement
        raise ArgumentError(
            f"{frame.program.name}: indices in {statement.distinct[0].tensor} are declared distinct, and two of them "
            f"are the same element of {statement.target}"
        )


def _assign(step: _Step, after: _Whole) -> None:
    seen: set[int] = set()
    for here in step.pieces(frozenset(), step.fits):
        mask = instances(here)
        if mask.any():
            terms = collapse(evaluate_expression(here.statement.value, here, mask), step.type)
            place = placement(here, mask, step.window)
            if step.frame.check_indices and here.statement.distinct:
                _require_distinct(place, seen, here)
            after.assign(terms, place)


def _reduce(step: _Step, reduction: Reduction, before: Bounded, after: _Whole) -> None:
    frame, summed = step.frame, step.type
    if step.type.is_half and isinstance(frame.statement.value, Cast):
        summed = ScalarType.FLOAT32
        frame = replace(frame, statement=replace(frame.statement, value=float32_term(frame.statement.value)))
    step = replace(step, frame=frame)
    for window in step.windows():
        total, touched, fresh, unsure = _totals(step.within(window), reduction, summed)
        # What finishes the totals has dozens of arrays: they are of a few elements at a time.
        for piece in pieces(window.elements, frozenset(), lambda box: volume(box) <= STEP):
            here = Window(piece, window.whole)
            part, inner = here.slices(step.window.origin), here.slices(window.origin)
            initialize = fresh[inner] if fresh.ndim else fresh
            found = total.part(inner).finish(before.part(part), initialize)
            if summed is not step.type:
                found = decisions.convert(settle(found, summed), summed, step.type)
            found = collapse(found, step.type)
            changed = np.logical_or(touched[inner], initialize)
            if unsure.any():
                # Whether an instance writes there, only its rounding says.
                doubt = np.broadcast_to(unsure[inner] if unsure.ndim else unsure, found.value.shape)
                found = Bounded(found.value, np.where(doubt, np.inf, found.error), found.ambiguous | doubt)
                changed = changed | doubt
            after.replace(part, found, changed)


def _totals(step: _Step, reduction: Reduction, type: ScalarType) -> tuple[Accumulator, BoolArray, BoolArray, BoolArray]:
    """Of the elements of the window: what terms make, which have terms, which are set to the neutral element first.

    And of which it is not certain what terms they have.

    ``type``: in which terms are combined.
    """
    statement, shape = step.frame.statement, step.window.shape
    product, of_two = is_product(statement.value), is_product_of_two(statement.value)
    additions = 0.0 if step.instructions is None else step.instructions.additions
    total = accumulator(reduction, shape, type, product, of_two, is_scatter(statement), additions)
    touched = np.zeros(shape, np.bool_)
    factors = factors_of(statement.value)
    if isinstance(total, FloatSum) and len(factors) > 1 and fills_box(statement):
        _contract(step, factors, total, touched)
    else:
        _absorb(step, total, touched)
    unsure = _doubtful(step) if is_scatter(statement) else CERTAIN
    return total, touched, _fresh(step) if statement.initialize else CERTAIN, unsure


def _absorb(step: _Step, total: Accumulator, touched: BoolArray) -> None:
    """Folds the terms of the frame's box into the accumulator, and marks the elements that it touches."""
    if _absorb_running(step, total, touched):
        return
    for here in step.pieces(frozenset(), step.fits):
        mask = instances(here)
        if mask.any():
            place = placement(here, mask, step.window)
            total.absorb(_term(here, mask, step.instructions), place)
            place.fold(np.logical_or, touched, ALWAYS, ~ALWAYS)


def _term(here: Frame, mask: BoolArray, instructions: Instructions | None) -> Bounded:
    """The terms of a statement in a box, with room for what instructions may do to them."""
    found = evaluate_expression(here.statement.value, here, mask)
    if instructions is None:
        return found
    factors = (settle(evaluate_expression(factor, here, mask), factor.type) for factor in instructions.factors)
    return instructions.term(found, *factors)


def _absorb_running(step: _Step, total: Accumulator, touched: BoolArray) -> bool:
    """As ``_absorb`` where each term is computed once for all elements that have it; False where that cannot be."""
    found = running(step.frame)
    if found is None or running_placement(found, found.frame, ALWAYS, step.window) is None:
        return False
    for here in replace(step, frame=found.frame).pieces(frozenset(), step.fits):
        mask = instances(here)
        place = running_placement(found, here, mask, step.window)
        assert place is not None, "parts of a box are where the whole is"
        total.absorb(_term(here, mask, step.instructions), place)
        place.fold(np.logical_or, touched, ALWAYS, ~ALWAYS)
    return True


def _doubtful(step: _Step) -> BoolArray:
    """The elements of a window of which only rounding says whether instances write them."""
    unsure = CERTAIN
    for here in step.pieces(frozenset(), step.fits):
        mask = instances(here)
        found = doubtful(here, mask, step.window) if mask.any() else None
        if found is not None:
            unsure = np.logical_or(unsure, found)
    return unsure


def _contract(step: _Step, factors: tuple[Expression, ...], total: FloatSum, touched: BoolArray) -> None:
    """As ``_absorb`` for a box of products, by matrix multiplication wherever that is possible."""
    statement, places = step.frame.statement, step.frame.positions
    used = [frozenset(places[name] for name in iterators_in((factor,))) for factor in factors]
    kept = frozenset(places[name] for name in iterators_in(statement.subscripts))

    def fits(box: Box) -> bool:
        largest = largest_intermediate(used, kept, extents(box))
        return largest <= _CONTRACTION_STEP and step.parts.fit(statement, box)

    for here in step.pieces(kept, fits):
        place = placement(here, ALWAYS, step.window)
        operands = [settle(evaluate_expression(factor, here, ALWAYS), factor.type) for factor in factors]
        if step.instructions is not None:
            operands = [step.instructions.rounded(operand) for operand in operands]
        grids = [as_grid(operand, len(here.box)) for operand in operands]
        if place.forms is not None and absorb_product(total, grids, place):
            place.fold(np.logical_or, touched, ALWAYS, ~ALWAYS)
        else:
            _absorb(replace(step, frame=here), total, touched)


def _fresh(step: _Step) -> BoolArray:
    """The elements of a window that an initializing statement sets to the neutral element first."""
    statement = step.frame.statement
    statement = initialized(statement, step.frame.program.tensor(statement.target).shape)
    here = replace(step.frame, statement=statement, positions=positions(statement))
    here = restricted(step.window, replace(here, box=bounding_box(here)))
    fresh = np.zeros(step.window.shape, np.bool_)
    boxes = pieces(here.box, frozenset(), lambda box: volume(box) <= STEP, partial(reaches, step.window, here))
    for frame in (replace(here, box=box) for box in boxes):
        mask = instances(frame)
        if mask.any():
            placement(frame, mask, step.window).fold(np.logical_or, fresh, ALWAYS, ~ALWAYS)
    return fresh
