"""The loops of copies between tensors and the buffers of a thread or a block."""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.ir.scop import ScopStatement
from tc.polyhedral.ir.tree import Band, Leaf, Member, Node


def copy_band(copy: ScopStatement, depth: int) -> Node:
    """One loop for each local subscript of a copy, which are its iterators from ``depth`` on."""
    local = isl.LocalSpace.from_space(copy.domain.get_space())
    variables = (
        isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, position))
        for position in range(depth, copy.domain.dim(isl.dim_type.set))
    )
    members = tuple(Member(isl.UnionPwAff.from_pw_aff(variable), coincident=True) for variable in variables)
    return Band(members, permutable=True, child=Leaf()) if members else Leaf()
