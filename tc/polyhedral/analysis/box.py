"""Bounding boxes of what is touched below a prefix of the schedule (paper, A.3: array tiles)."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final

import islpy as isl

from tc.base.remembered import Remembered
from tc.language.isl.pieces import basic_sets_of, pieces_of
from tc.polyhedral.analysis.functions import vector_map
from tc.polyhedral.ir.loops import MOST_UNROLLED
from tc.polyhedral.ir.tree import Member


@dataclass(frozen=True)
class Box:
    """The bounding box of what is touched for each value of a prefix: affine offsets, fixed extents.

    ``depth``: members of the prefix.  ``offsets[d]`` is a constant and a coefficient for each of them.  ``runs[d]``: so
    many elements are side by side, and ``steps[d]`` from one such run to the next.
    """

    depth: int
    offsets: tuple[tuple[int, tuple[int, ...]], ...]
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    runs: tuple[int, ...]

    def fits_registers(self, most: int) -> bool:
        """Whether it has at most so many elements, and loops over them are unrolled: what registers can hold."""
        return math.prod(self.extents) <= most and all(extent <= MOST_UNROLLED for extent in self.extents)


def prefix_map(domain: isl.Set, prefix: Items[Member]) -> isl.Map:
    """``{ instance -> [values of the members] }``."""
    own = domain.get_space().from_domain().add_dims(isl.dim_type.out, 1)
    return vector_map([member.function.extract_pw_aff(own) for member in prefix], domain)


def bounding_box(accesses: Items[isl.Map], prefix: Items[Member], *, strided: bool = False) -> Box | None:
    """The box of the elements that the accesses touch below the prefix; None unless its size is fixed.

    The offset is the least element in every dimension (paper, A.3: the lower bound that gives the smallest size).
    ``strided``: what lies between the elements of a regular pattern is left out.
    """
    footprint = _footprint(accesses[0], prefix)
    for access in accesses[1:]:
        footprint = footprint.union(_footprint(access, prefix))
    footprint = footprint.coalesce()
    if _moves_by_quotients(footprint):
        return None
    offsets: list[tuple[int, tuple[int, ...]]] = []
    extents: list[int] = []
    distances = footprint.reverse().apply_range(footprint).deltas() if strided else None
    steps: list[int] = []
    runs: list[int] = []
    hull = footprint.affine_hull()  # an equality says which element is the only one: isl need not look for a minimum
    for dimension in range(footprint.dim(isl.dim_type.out)):
        only = _only_element(hull, dimension)
        if only is not None:
            offsets.append(only)
            extents.append(1)
            steps.append(1)
            runs.append(1)
            continue
        least, most = footprint.dim_min(dimension).coalesce(), footprint.dim_max(dimension)
        offset = _affine(least)
        if offset is None:
            return None
        offsets.append(offset)
        step = 1 if distances is None else max(1, int(distances.get_stride(dimension).to_python()))
        # isl may write an integer as a quotient, and then refuses to look for its maximum.
        farthest = int(most.sub(least).floor().max_val().to_python())
        run = _run(footprint, dimension, offset) if strided and step == 1 and 1 < farthest < _FAR else None
        length, step = run or (1, step)
        steps.append(step)
        runs.append(length)
        extents.append(farthest // step * length + (1 if length == 1 else min(length, farthest % step + 1)))
    return Box(len(prefix), tuple(offsets), tuple(extents), tuple(steps), tuple(runs))


# Elements of a thread that are looked at one by one, and how far apart they are at most.
_FEW: Final = 64
_FAR: Final = 512


def _run(footprint: isl.Map, dimension: int, offset: tuple[int, tuple[int, ...]]) -> tuple[int, int] | None:
    """How many elements are side by side, and how far apart such runs are; None where there are no equal runs."""
    others = footprint.dim(isl.dim_type.out) - dimension - 1
    own = footprint.project_out(isl.dim_type.out, dimension + 1, others).project_out(isl.dim_type.out, 0, dimension)
    constant, coefficients = offset
    prefix = [f"p{n}" for n in range(len(coefficients))]
    text = f"{{ [[{', '.join(prefix)}] -> [x]] -> [x - ({_first(constant, coefficients, prefix)})] }}"
    bare = own.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
    values = bare.wrap().apply(isl.Map.read_from_str(footprint.get_ctx(), text)).coalesce()
    if values.involves_dims(isl.dim_type.param, 0, values.dim(isl.dim_type.param)):
        return None
    found: list[int] = []
    most = int(values.dim_max_val(0).to_python())
    size = values.count_val()
    if not size.is_int() or not 1 < int(size.to_python()) <= min(_FEW, most):
        return None
    values.foreach_point(lambda point: found.append(int(point.get_coordinate_val(isl.dim_type.set, 0).to_python())))
    found.sort()
    run = next(n for n, value in enumerate(found) if value != n)
    step = found[run]
    regular = run > 1 and all(value % step < run for value in found)
    return (run, step) if regular else None


class Boxes:
    """Boxes of single accesses, found once for the very same access and prefix."""

    def __init__(self) -> None:
        self._found: Final = Remembered[Box | None]()

    def of(self, access: isl.Map, prefix: Items[Member]) -> Box | None:
        """``bounding_box`` of the access."""
        return self._found.of((access, *prefix), lambda: bounding_box([access], prefix))


def _only_element(hull: isl.BasicMap, dimension: int) -> tuple[int, tuple[int, ...]] | None:
    """The one element in a dimension, as equalities of the footprint have it; None unless some equality does."""
    others = hull.dim(isl.dim_type.out) - dimension - 1
    own = hull.project_out(isl.dim_type.out, dimension + 1, others).project_out(isl.dim_type.out, 0, dimension)
    only = isl.Map.from_basic_map(own)
    return _affine(only.as_pw_multi_aff().get_at(0)) if only.is_single_valued() else None


def _footprint(access: isl.Map, prefix: Items[Member]) -> isl.Map:
    """``{ [values of the members] -> element }``."""
    return prefix_map(access.domain(), prefix).reverse().apply_range(access)


# Remainders that isl looks at one by one.
_SMALL_DIVISOR: Final = 64


def _moves_by_quotients(footprint: isl.Map) -> bool:
    """Whether bounds are quotients, by large numbers, of what the prefix says.

    No offset is affine then, and isl would search for minutes.
    """
    depth = footprint.dim(isl.dim_type.in_)
    # Divisions that isl knows to exist, but has not spelled out, cannot be looked at.
    for piece in basic_sets_of(footprint.wrap().compute_divs()):
        divisions = range(piece.dim(isl.dim_type.div))
        moving = [n for n in divisions if _moves(piece.get_div(n), depth)]
        for constraint in piece.get_constraints() if moving else ():
            if not constraint.is_equality() and any(_uses(constraint, division) for division in moving):
                return True
    return False


def _moves(division: isl.Aff, dimensions: int) -> bool:
    """Whether the division is by a large number, and of one of the first dimensions."""
    if int(division.get_denominator_val().to_python()) <= _SMALL_DIVISOR:
        return False
    return any(not division.get_coefficient_val(isl.dim_type.in_, n).is_zero() for n in range(dimensions))


def _uses(constraint: isl.Constraint, division: int) -> bool:
    return not constraint.get_coefficient_val(isl.dim_type.div, division).is_zero()


def _affine(function: isl.PwAff) -> tuple[int, tuple[int, ...]] | None:
    """Constant and integer coefficients of a function of one piece without divisions or open sizes; None for others."""
    pieces = [piece for _, piece in pieces_of(function)]
    if len(pieces) != 1 or pieces[0].dim(isl.dim_type.div) != 0:
        return None
    affine = pieces[0]
    if affine.involves_dims(isl.dim_type.param, 0, affine.dim(isl.dim_type.param)):
        return None
    count = affine.dim(isl.dim_type.in_)
    values = [affine.get_constant_val(), *(affine.get_coefficient_val(isl.dim_type.in_, p) for p in range(count))]
    if not all(value.is_int() for value in values):
        return None
    constant, *coefficients = (int(value.to_python()) for value in values)
    return constant, tuple(coefficients)


def box_elements(box: Box, buffer: str, access: isl.Map) -> isl.Map:
    """``{ buffer[prefix, local] -> tensor[offset(prefix) + step * (local / run) + local % run] }``."""
    prefix = [f"p{n}" for n in range(box.depth)]
    local = [f"a{n}" for n in range(len(box.extents))]
    elements = [
        f"{_first(constant, coefficients, prefix)} + {_in_run(a, step, run)}"
        for (constant, coefficients), step, run, a in zip(box.offsets, box.steps, box.runs, local, strict=True)
    ]
    text = f"{{ [{', '.join(prefix + local)}] -> [{', '.join(elements)}] }}"
    named = isl.Map.read_from_str(access.get_ctx(), text).set_tuple_name(isl.dim_type.in_, buffer)
    return named.set_tuple_name(isl.dim_type.out, access.get_tuple_name(isl.dim_type.out))


def _first(constant: int, coefficients: Items[int], prefix: Items[str]) -> str:
    """The first element, for these names of the members of the prefix."""
    return " + ".join([str(constant), *(f"{c}*{p}" for c, p in zip(coefficients, prefix, strict=True))])


def _in_run(local: str, step: int, run: int) -> str:
    """How far the element is behind the first one."""
    return f"{step}*{local}" if run == 1 else f"{step}*floor({local}/{run}) + ({local} mod {run})"


def own_space(domain: isl.Set) -> isl.UnionSet:
    """Every point of the set's space: what a filter has to say."""
    return isl.UnionSet.from_set(isl.Set.universe(domain.get_space()))
