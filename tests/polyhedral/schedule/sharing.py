"""Whether the proof of shared scatters refuses a program that something is wrong with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tc.base.errors import VerificationError
from tc.language.isl.session import isl_context
from tc.language.program.program import Program
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.splits import Share
from tc.polyhedral.proof.verify_shares import find_wrong_share, prove_shares
from tc.polyhedral.schedule.scatter import share_scatters


def refused(original: Specialization, share: Share, mutate: Callable[[Program], Program]) -> bool:
    with isl_context() as context:
        changed, shared = share_scatters(original, (share,))
        prove_shares(original, changed, shared, context)
        wrong = replace(changed, program=mutate(changed.program))
        if find_wrong_share(original, wrong, shared, context) is None:
            return False
        with pytest.raises(VerificationError, match="the sharing of scatters is not proven correct"):
            prove_shares(original, wrong, shared, context)
        return True
