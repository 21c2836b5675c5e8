"""``Control``: how a search is timed, followed and ended from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tc.base.frozen import frozen
from tc.tuner.session.progress_events import Listener, silence
from tc.tuner.trial.budget import Clock


@frozen
class Control:
    """``listen``: is told of every event.  ``stop``: whether to end now.  ``clock``: what its budget is counted by."""

    listen: Listener = silence
    stop: Callable[[], bool] = lambda: False
    clock: Clock = time.monotonic


UNATTENDED: Final = Control()
