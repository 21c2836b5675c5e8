"""Rows of inputs that are read again once something is known of them: those that are normalized."""

from __future__ import annotations

import math

from tc.language.program.program import Role, iterators_in
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import written_iterators
from tc.polyhedral.schedule.split import reads_of


def reread_bytes(specialization: Specialization) -> int:
    """Of the largest row that one statement reduces, and one that reduces nothing reads again; 0 without.

    A row is what an input has in the dimensions that no result of the reduction depends on.
    """
    program, most = specialization.program, 0
    if specialization.signature.symbolic:
        return 0
    again = {read.tensor for own in program.statements if own.reduction is None for read in reads_of(own)}
    for statement in program.statements:
        if statement.reduction is None or statement.blocks:
            continue
        kept = {iterator.name for iterator in written_iterators(statement)}
        for read in reads_of(statement):
            if read.tensor not in again or program.tensor(read.tensor).role is not Role.INPUT:
                continue
            layout = specialization.layouts[read.tensor]
            sides = zip(layout.shape, read.subscripts, strict=True)
            row = math.prod(extent for extent, subscript in sides if not iterators_in((subscript,)) & kept)
            most = max(most, row * layout.type.itemsize)
    return most
