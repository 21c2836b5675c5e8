"""Messages between a search and its worker processes: a line of JSON, then bytes."""

from __future__ import annotations

import json
from typing import IO, Final, TypeAlias, cast

from tc.base.frozen import frozen
from tc.base.json_records import from_json, to_json
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_outcome import Failed, FailureKind


@frozen
class Prepare:
    """Make ready for a task, whose arrays and expected results lie in ``folder``; nothing comes back but ``Done``.

    ``device``: the number of the GPU that candidates run on, if they run on one.
    """

    task: Task
    folder: str
    device: int = 0


@frozen
class Build:
    """Compile the task with these options, in canonical JSON."""

    options: str


@frozen
class Built:
    """An executable, packed, is in the bytes."""


@frozen
class Calibrate:
    """From now on, run the executable in the bytes before and after what is timed."""


@frozen
class Check:
    """Run the executable in the bytes once, in guarded memory, and compare its results with the expected ones.

    ``slot``: the name under which it is timed if it is right; what had the name is forgotten.
    """

    slot: str


@frozen
class Checked:
    """The results are right.  ``deviation``: the most that an element uses of its bound.  ``numerics``: a hash of the
    bits of all results.
    """

    deviation: float
    numerics: str


GIVE_UP: Final = 5.0
HOPELESS: Final = 1.5


@frozen
class Time:
    """Time what is in a slot for about so many ``seconds``.

    ``quickest``: seconds of the best candidate so far, infinite if there is none.  Who takes ``GIVE_UP`` times as long
    is called once (the original's bound), who takes ``HOPELESS`` times as long only as often as makes that certain.
    """

    slot: str
    seconds: float
    quickest: float


@frozen
class Timed:
    """Seconds of a call, in every sample; of the calibrating kernel before and after them."""

    samples: tuple[float, ...]
    before: float
    after: float


@frozen
class Done:
    """Nothing else to say."""


Question: TypeAlias = Prepare | Build | Calibrate | Check | Time
Answer: TypeAlias = Done | Built | Checked | Timed | Failed
Message: TypeAlias = Question | Answer

_MESSAGES: Final = {
    kind.__name__: kind for kind in (Prepare, Build, Built, Calibrate, Check, Checked, Time, Timed, Done, Failed)
}


# Whoever is to be timed was checked in a process that is gone.
EMPTY: Final = Failed(FailureKind.LOST, "nothing is in the slot")


@frozen
class Received:
    """A message with its bytes.  ``limit``: seconds that whoever asks waits for an answer."""

    message: Message
    limit: float
    payload: bytes


def send(stream: IO[bytes], message: Message, limit: float = 0.0, payload: bytes = b"") -> None:
    """Writes a message; OSError if the reader is gone."""
    head = {"kind": type(message).__name__, "fields": to_json(message), "limit": limit, "bytes": len(payload)}
    stream.write(json.dumps(head).encode() + b"\n" + payload)
    stream.flush()


def receive(stream: IO[bytes]) -> Received | None:
    """The next message; None where the stream ends.  ValueError for anything else."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    payload = stream.read(head["bytes"])
    if len(payload) < head["bytes"]:
        return None
    message = cast("Message", from_json(_MESSAGES[head["kind"]], head["fields"]))
    return Received(message, head["limit"], payload)
