"""What the processes that measure are asked, and what they answer.

Nothing here imports NumPy: a process must know its number of threads before it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from benchmarks.measuring.contender import Contender
    from benchmarks.problems.case import Case
    from tc.base.json_records import Json

Answer_co = TypeVar("Answer_co", covariant=True)


class Question(Generic[Answer_co]):
    """A message that is answered by an ``Answer_co``, or by ``Refused``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no answer.  ``wrong``: because a result was."""

    reason: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One round of calls: the median, the least and the most seconds of a call, and how many calls there were.

    ``faults``: pages that the system had to provide, per call.
    """

    seconds: float
    least: float
    most: float
    calls: int
    faults: float


@dataclass(frozen=True, slots=True)
class Ready:
    """A contender whose first result was checked.

    ``preparation``: seconds until that result.  ``deviation``: see ``benchmarks.measuring.judge``.  ``options``,
    ``stages`` (seconds per stage of the compilation) and ``source`` (what tells one kernel's text from another's): of
    ours.
    """

    preparation: float
    deviation: float
    options: Json | None = None
    stages: dict[str, float] | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Judge(Question[object]):
    """Compute with the oracle what the results must be, and keep them in ``folder``; answered by their ``Work``."""

    case: Case
    folder: Path
    seed: int


@dataclass(frozen=True, slots=True)
class Prepare(Question[Ready]):
    """Make ready to measure a contender, and compare its result with what was kept in ``folder``.

    ``arrays``: the framework of our arguments, NumPy or PyTorch.  ``options``: ours, as JSON; None for the default.
    """

    case: Case
    contender: Contender
    folder: Path
    seed: int
    arrays: Contender
    options: Json | None = None


@dataclass(frozen=True, slots=True)
class Calibrate(Question[Ready]):
    """Make ready to measure the kernel that tells whether the machine is quiet."""


@dataclass(frozen=True, slots=True)
class Measure(Question[Sample]):
    """Call what was made ready for about so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CheckAgain(Question[Ready]):
    """Compare one more result of what was made ready with what must come."""


@dataclass(frozen=True, slots=True)
class MeasureRoofs(Question[object]):
    """Measure what the machine can do at most; answered by its ``Roofs``."""
