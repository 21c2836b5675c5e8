"""The proof that every access stays inside its buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import islpy as isl

from tc.language.isl.affine import Frame, extent_function, isl_name
from tc.language.isl.unnamed import Unnamed
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop


def check_bounds(scop: Scop) -> Counterexample | None:
    """The first access outside, or None."""
    promoted = (promotion.buffer for promotion in scop.promotions)
    layouts = {isl_name(buffer.name): buffer.layout for buffer in (*scop.buffers, *scop.temporaries, *promoted)}
    boxes, promotions = _Boxes(layouts, scop.sizes), {p.buffer.name: p for p in scop.promotions}
    for statement in scop.statements:
        for relation in (*statement.reads, *statement.writes):
            found = boxes.outside(relation)
            if found is not None:
                return found
        for access in statement.promoted:
            promotion = promotions.get(access.buffer)
            if promotion is None:
                return Counterexample(Violation.WRONG_SCOPE, f"{statement.name}: nothing allocates {access.buffer}")
            found = _check_promoted_bounds(access, promotion, boxes)
            if found is not None:
                return found
    return next(filter(None, (_check_gathered(scop, p) for p in scop.promotions if p.gathered is not None)), None)


def _check_gathered(scop: Scop, promotion: Promotion) -> Counterexample | None:
    """Whether tables and indices stay as they are, and only such elements are copied as statements read.

    Where they do, the subscripts are known to be inside.
    """
    assert promotion.gathered is not None
    written = {relation.get_tuple_name(isl.dim_type.out) for s in scop.statements for relation in s.writes}
    for tensor in promotion.gathered.tensors:
        if isl_name(tensor) in written or all(buffer.name != tensor for buffer in scop.buffers):
            return Counterexample(Violation.BYPASSED, f"{promotion.buffer.name}: {tensor} is not constant")
    uses = [(s, a) for s in scop.statements for a in s.promoted if a.buffer == promotion.buffer.name]
    read = isl.Set.empty(promotion.elements.range().get_space())
    for statement, access in uses:
        if statement.name != promotion.loads:
            read = read.union(access.element.range())
    for _, access in uses:
        found = _outside(access.element, read)
        if found is not None:
            return found
    return None


def _check_promoted_bounds(access: PromotedAccess, promotion: Promotion, boxes: _Boxes) -> Counterexample | None:
    place = access.place.set_tuple_name(isl.dim_type.out, access.buffer)
    # What is gathered is no tensor; ``_check_gathered`` looks at its elements.
    for relation in (place, access.element) if promotion.gathered is None else (place,):
        found = boxes.outside(relation)
        if found is not None:
            return found
    return None


def _outside(relation: isl.Map, elements: isl.Set) -> Counterexample | None:
    """Instances that touch something else."""
    if relation.range().is_subset(elements):
        return None
    return Counterexample(Violation.OUT_OF_BOUNDS, pair_text(isl.UnionMap.from_map(relation.subtract_range(elements))))


@dataclass(frozen=True)
class _Boxes:
    """All elements that buffers have, for every value of the symbolic sizes.

    ``inside``: the relations that are known to stay inside of buffers with such extents, whatever they are called.
    """

    layouts: Mapping[str, Layout]
    sizes: Sizes
    inside: set[object] = field(default_factory=set)

    def outside(self, relation: isl.Map) -> Counterexample | None:
        """Instances that touch what the buffer that the relation leads to has not."""
        layout = self.layouts[relation.get_tuple_name(isl.dim_type.out)]
        alike = (Unnamed(relation), layout.shape, layout.extents)
        if alike in self.inside:
            return None
        found = _outside(relation, self.box(relation))
        if found is None:
            self.inside.add(alike)
        return found

    def box(self, relation: isl.Map) -> isl.Set:
        """Of the buffer that the relation leads to."""
        layout = self.layouts[relation.get_tuple_name(isl.dim_type.out)]
        box = isl.Set.universe(relation.get_space().range())
        for position, extent in enumerate(layout.shape):
            box = box.lower_bound_val(isl.dim_type.set, position, isl.Val.zero(relation.get_ctx()))
            box = box.upper_bound_val(isl.dim_type.set, position, isl.Val.int_from_si(relation.get_ctx(), extent - 1))
        return box.intersect(self._below(layout, box)) if any(layout.extents) else box

    def _below(self, layout: Layout, box: isl.Set) -> isl.Set:
        """Where every subscript is below its extent, if that depends on sizes."""
        names = tuple(f"d{n}" for n in range(box.dim(isl.dim_type.set)))
        frame = Frame(box.get_ctx(), box.get_tuple_name(), names, sizes=self.sizes)
        inside = frame.universe()
        for name, extent in zip(names, layout.extents, strict=True):
            if extent is not None:
                inside = inside.intersect(frame.require(name).lt_set(extent_function(extent, frame)))
        return inside
