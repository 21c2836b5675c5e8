"""How far predictions are off: each beside what was measured or published, and what follows for all of them."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.predicting.described import predict_described
from benchmarks.predicting.measured import FIFTH, measured
from benchmarks.predicting.published import published
from tc.prediction.predict import Use, predict
from tc.prediction.prediction import Prediction
from tc.targets.devices import DEVICES

OURS: Final = "ours"
OURS_LATER: Final = "ours, unseen"


@dataclass(frozen=True, slots=True)
class Judged:
    """``source``: who measured; ``OURS`` are kernels of this project: to those on an H200 constants were fitted.
    ``OURS_LATER`` are such that were measured when the model was done.
    """

    source: str
    case: str
    device: str
    seconds: float
    prediction: Prediction

    @property
    def ratio(self) -> float:
        """Predicted divided by measured."""
        return self.prediction.seconds / self.seconds


@dataclass(frozen=True, slots=True)
class Verdict:
    """``tau``: Kendall's, of measured and predicted times.  ``quartiles``: of the ratios, the median in the middle.

    ``off``: the median of how far ratios are from 1, in either direction.  ``below``: floors that are below what was
    measured.
    """

    count: int
    tau: float
    quartiles: tuple[float, float, float]
    off: float
    below: int


def judged_measured() -> Iterator[Judged]:
    """Our kernels on an H200 and an H100."""
    for case in measured():
        counts, uses = [kernel.count for kernel in case.kernels], [Use(kernel.registers) for kernel in case.kernels]
        source = OURS_LATER if case.report == FIFTH else OURS
        yield Judged(source, case.case, case.device, case.seconds, predict(counts, DEVICES[case.device], uses))


def judged_published() -> Iterator[Judged]:
    """Kernels of libraries, on all devices."""
    for one in published():
        found = predict_described(one.call, DEVICES[one.device], cold=True)
        yield Judged(one.source, one.case, one.device, one.seconds, found)


def verdict(cases: Sequence[Judged]) -> Verdict:
    """What predictions are worth; ValueError for fewer than two."""
    ratios = [case.ratio for case in cases]
    first, second, third = statistics.quantiles(ratios, method="inclusive")
    return Verdict(
        count=len(cases),
        tau=kendall([(case.seconds, case.prediction.seconds) for case in cases]),
        quartiles=(first, second, third),
        off=statistics.median(max(ratio, 1 / ratio) for ratio in ratios) - 1,
        below=sum(case.prediction.floor < case.seconds for case in cases),
    )


def kendall(pairs: Sequence[tuple[float, float]]) -> float:
    """Kendall's tau-b: how many more pairs are in the same order than in the opposite one, without ties."""
    same = opposite = first = second = 0
    for (x, y), (other_x, other_y) in itertools.combinations(pairs, 2):
        product = (x > other_x) - (x < other_x), (y > other_y) - (y < other_y)
        same += product[0] * product[1] > 0
        opposite += product[0] * product[1] < 0
        first += product[0] != 0
        second += product[1] != 0
    return float((same - opposite) / (first * second) ** 0.5) if first and second else 0.0
