"""The sizes and scalars of a definition as parameters of isl, and the values that a call may give them."""

from __future__ import annotations

import islpy as isl

from tc.language.isl.affine import Frame, affine_condition
from tc.language.program.program import Program


def integer_parameters(program: Program) -> tuple[str, ...]:
    """The names of all sizes and integer scalars."""
    return (*program.sizes, *(scalar.name for scalar in program.scalars if scalar.type.is_integer))


def possible_parameters(program: Program, context: isl.Context, names: tuple[str, ...], least_size: int) -> isl.Set:
    """The values of ``names`` that fulfil the preconditions which are affine, with sizes from ``least_size`` on.

    Scalars may have any value.
    """
    frame = Frame(context, "", (), names)
    values = frame.universe()
    for position, name in enumerate(names):
        if name in program.sizes:
            values = values.lower_bound_val(isl.dim_type.param, position, isl.Val.int_from_si(context, least_size))
    for precondition in program.preconditions:
        holds = affine_condition(precondition.condition, frame)
        if holds is not None:
            values = values.intersect(holds)
    return values.params()
