"""Whether an earlier search had at least a given budget."""

from __future__ import annotations

import json
from collections.abc import Callable

from tc.base.errors import OptionsError
from tc.tuner.trial.budget import Budget


def covers(budget: str | Budget) -> Callable[[str], bool]:
    """Tells of the settings of a run, in JSON, whether its budget covers this one.

    A run with an unreadable budget does: it is not searched twice.  OptionsError for what is no budget.
    """
    wanted = Budget.parse(budget) if isinstance(budget, str) else budget

    def run_covers(settings: str) -> bool:
        try:
            return Budget.parse(str(json.loads(settings)["budget"])).covers(wanted)
        except (OptionsError, ValueError, KeyError, TypeError):
            return True

    return run_covers
