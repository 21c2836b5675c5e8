"""``Task``: the definition, signature and target that are tuned."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.program import Program
from tc.language.program.specialization import Signature


@frozen
class Task:
    """One definition of a text, for one signature, on one target.

    ``scalars``: the values of all scalar arguments, as text.
    """

    text: str
    definition: str
    signature: Signature
    target: str
    scalars: tuple[tuple[str, str], ...] = ()

    @property
    def calls(self) -> tuple[tuple[int, ...], ...]:
        """Values of the symbolic sizes in the calls that candidates are checked on, the greatest ones first.

        The others are odd, so that vectors and most tiles leave a rest.
        """
        most = tuple(size.most for size in self.signature.symbolic)
        return tuple(dict.fromkeys((most, tuple(5 * extent // 8 | 1 for extent in most))))

    def value(self, name: str, type: ScalarType) -> int | float:
        """The value of a scalar argument of this type."""
        text = dict(self.scalars)[name]
        return float(text) if type.is_floating else int(text)


def parse_task(task: Task) -> Program:
    """What the task's definition means."""
    from tc.grammar.parser import parse
    from tc.language.lower.lower import lower_text

    return lower_text(parse(task.text), task.text)[task.definition]
