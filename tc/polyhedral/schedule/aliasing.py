"""Whether an output may take the memory of an input: nothing may read an element after it was overwritten."""

from __future__ import annotations

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.isl.session import isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.scop import ScopStatement, build_scop


def find_overwritten_read(specialization: Specialization, output: str, input: str) -> str | None:
    """A read of ``input`` that would come after a write of ``output`` at the same place, as text; None without one.

    ``specialization`` keeps the two apart; their layouts are equal.  Instances of one statement are unordered, so only
    an instance's own read is safe from its write.
    """
    with isl_context() as context:
        statements = build_scop(specialization, context).statements
        for position, writer in enumerate(statements):
            for reader in statements[position:]:
                found = _overwritten(writer, reader, output, input)
                if found is not None:
                    return found
    return None


def _overwritten(writer: ScopStatement, reader: ScopStatement, output: str, input: str) -> str | None:
    for write in writer.writes:
        for read in reader.reads:
            names = write.get_tuple_name(isl.dim_type.out), read.get_tuple_name(isl.dim_type.out)
            if names != (isl_name(output), isl_name(input)):
                continue
            pairs = write.set_tuple_name(isl.dim_type.out, isl_name(input)).apply_range(read.reverse())
            if writer is reader:
                pairs = pairs.subtract(isl.Map.identity(pairs.get_space()))
            if not pairs.is_empty():
                witness = str(pairs.sample()).strip("{ }")
                return f"{witness}: the first writes an element of {output} that the second reads from {input}"
    return None
