"""From a program to what its callers must know."""

from __future__ import annotations

from tc.base.interface import Interface, ScalarParameter, TensorParameter
from tc.language.lower.specialize import structural_scalars
from tc.language.program.program import Program, Role, SizeReference, Tensor


def interface_of(program: Program) -> Interface:
    """The interface of a program that is not yet specialized."""
    structural = frozenset(structural_scalars(program))
    passed = {*program.arguments, *program.results}
    return Interface(
        name=program.name,
        arguments=program.arguments,
        results=program.results,
        tensors=tuple(
            TensorParameter(
                tensor.name, tensor.type, len(tensor.shape), tensor.role is Role.IN_OUT, _sizes(tensor, program)
            )
            for tensor in program.tensors
            if tensor.name in passed
        ),
        scalars=tuple(ScalarParameter(s.name, s.type, s.name in structural) for s in program.scalars),
    )


def _sizes(tensor: Tensor, program: Program) -> tuple[int | None, ...]:
    if tensor.role is not Role.INPUT:
        return ()
    return tuple(program.sizes.index(e.name) if isinstance(e, SizeReference) else None for e in tensor.shape)
