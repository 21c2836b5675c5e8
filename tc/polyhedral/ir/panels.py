"""Panels: how an operand lies in its buffer in the order in which register tiles read it.

(Goto and van de Geijn, *Anatomy of high-performance matrix multiplication*, 2008, Section 4.2.3.)
"""

from __future__ import annotations

import islpy as isl

from tc.base.frozen import frozen


@frozen
class Panels:
    """How a local dimension of a buffer is cut into panels of ``size`` elements along it.

    The array has two dimensions in its place, before all others: the number of the panel, and what is inside of it.
    """

    dimension: int
    size: int


def in_panels(place: isl.Map, panels: Panels) -> isl.Map:
    """``{ instance -> [subscripts of the array] }`` for ``{ instance -> [local] }``."""
    local = isl.MultiAff.identity_on_domain_space(place.get_space().range())
    size = isl.Val.int_from_si(place.get_ctx(), panels.size)
    cut = local.get_at(panels.dimension)
    others = local.drop_dims(isl.dim_type.out, panels.dimension, 1)
    for part in (cut.mod_val(size), cut.scale_down_val(size).floor()):
        others = isl.MultiAff.from_aff(part).flat_range_product(others)
    return place.apply_range(isl.Map.from_multi_aff(others))
