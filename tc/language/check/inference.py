"""Types of all values: a tensor has the common type of everything that is written to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tc.base.types import ScalarType
from tc.language.draft.draft import Draft
from tc.language.draft.typed import Strength, common_type
from tc.language.program.report import Report

Types: TypeAlias = Mapping[str, ScalarType | None]

# Statements that read each other's tensors settle in two or three passes; promotion allows no more than a few.
_MAXIMUM_PASSES = 16


class TypeInference:
    """Checks comprehensions again and again until the types of the tensors that they read are settled.

    ``check``: gives the draft of a comprehension, and what is wrong with it, under the types known so far.
    ``targets`` and ``reads``: per comprehension, the tensor that it writes and those that it reads.
    ``fixed``: types of tensors written by calls.
    """

    def __init__(
        self,
        check: Callable[[int, Types], tuple[Draft, Report]],
        targets: Mapping[int, str],
        reads: Mapping[int, Sequence[str]],
        fixed: Mapping[str, Sequence[ScalarType]],
    ) -> None:
        self._check = check
        self._targets = targets
        self._readers: dict[str, list[int]] = {}
        for number, tensors in reads.items():
            for tensor in tensors:
                self._readers.setdefault(tensor, []).append(number)
        self._written: dict[str, dict[int, tuple[ScalarType, Strength]]] = {}
        for tensor, types in fixed.items():
            self._written[tensor] = {-1 - i: (type, Strength.STRONG) for i, type in enumerate(types)}
        self.types: dict[str, ScalarType | None] = {tensor: self._join(tensor) for tensor in fixed}
        self.drafts: dict[int, Draft] = {}
        self._reports: dict[int, Report] = {}
        self._pending = set(targets)

    def settle(self) -> None:
        """Settles the types and drafts."""
        for _ in range(_MAXIMUM_PASSES):
            if not self._pending:
                break
            self._pending = self._pass(sorted(self._pending))

    def replace(self, number: int, draft: Draft, report: Report) -> None:
        """Takes another draft of a comprehension, with what is wrong with it, in place of the one that it has."""
        self.drafts[number], self._reports[number] = draft, report

    def report(self, report: Report) -> set[int]:
        """Reports what is wrong; the numbers of the comprehensions in error."""
        failed = {number for number, found in self._reports.items() if found.count}
        for number in sorted(self._reports):
            report.extend(self._reports[number])
        for number in sorted(self._pending - failed):
            report.error(
                f"the type of `{self._targets[number]}` depends on itself",
                self.drafts[number].places.statement,
                "cast the value, for example to `float32(...)`",
            )
            failed.add(number)
        return failed

    def settled_types(self) -> dict[str, ScalarType]:
        """The types of all tensors; one to which nothing but itself is ever written counts as INT64."""
        return {tensor: type or ScalarType.INT64 for tensor, type in self.types.items()}

    def _pass(self, numbers: Sequence[int]) -> set[int]:
        """Checks comprehensions in order; returns those that read a tensor whose type changed behind them."""
        again: set[int] = set()
        for number in numbers:
            draft, self._reports[number] = self._check(number, self.types)
            self.drafts[number] = draft
            again.discard(number)
            tensor = self._targets[number]
            self._written.setdefault(tensor, {})[number] = (draft.value.type, draft.value.strength)
            type = self._join(tensor)
            if tensor not in self.types or self.types[tensor] is not type:
                self.types[tensor] = type
                again.update(self._readers.get(tensor, ()))
        return again

    def _join(self, tensor: str) -> ScalarType | None:
        type, strength = ScalarType.INT64, Strength.UNKNOWN
        for written in dict.fromkeys(self._written[tensor].values()):
            type, strength = common_type((type, strength), written)
        return None if strength is Strength.UNKNOWN else type
