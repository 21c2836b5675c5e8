"""How many operations of isl a program needs: isl stops where a set takes more than it is worth."""

from __future__ import annotations

from typing import Final

from tc.language.isl.session import MAX_OPERATIONS
from tc.language.program.specialization import Specialization
from tc.language.program.terms import byte_factors, factors_of_instructions

# isl's operations for a compilation: of one statement, and for each further one.  They last about two seconds: to learn
# that options are refused must not take longer.  The defaults of no kernel of the suite need half of them.
_OF_ONE: Final = 1_500_000
_OF_ANOTHER: Final = 1_000_000
# Which lane of a warp holds what is asked of matrix instructions.
_OF_MATRICES: Final = 2_000_000
# Where several products may share a kernel, in which statements are computed once more.
_OF_CHAINS: Final = 12_000_000
# Sizes that stay open are one dimension more of all sets each.
_OF_OPEN_SIZE: Final = 3_500_000
# To schedule takes longer, and is the same for all options with one fusion strategy.
_TO_SCHEDULE: Final = 6_000_000


def needed_operations(specialization: Specialization) -> tuple[int, int]:
    """For a compilation of the program, and to schedule its statements."""
    program = specialization.program
    statements = max(1, len(program.statements))
    opened = len(specialization.signature.symbolic) * _OF_OPEN_SIZE
    matrices = [s for s in program.statements if factors_of_instructions(s.value) or byte_factors(s.value)]
    further = opened + len(matrices) * _OF_MATRICES + (len(matrices) > 1) * _OF_CHAINS
    most = min(MAX_OPERATIONS, _OF_ONE + (statements - 1) * _OF_ANOTHER + further)
    return most, min(MAX_OPERATIONS, statements * _TO_SCHEDULE)
