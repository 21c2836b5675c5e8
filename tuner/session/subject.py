"""``Subject``: what is tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

import numpy.typing as npt

from tc.artifact.definition import Definition
from tc.base.frozen import frozen
from tc.language.program.specialization import Signature
from tc.language.text.print_program import program_text
from tc.targets.numerics import Numerics
from tc.targets.target import Target
from tc.tuner.trial.task import Task

Array: TypeAlias = npt.NDArray[Any]


@frozen
class Subject:
    """A definition for one signature.

    ``siblings``: all definitions of its text.  ``scalars``: values of the scalar arguments.  ``arrays``: arguments and
    first values of in-out results by name; None makes random ones.  ``numerics``: of a search that is to start from no
    options.
    """

    definition: Definition
    siblings: Mapping[str, Definition]
    signature: Signature
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    arrays: Mapping[str, Array] | None = None
    numerics: Numerics = field(default_factory=Numerics)

    def task(self, target: Target) -> Task:
        """What processes on a target are told of it."""
        text = self.definition.text
        return Task(
            program_text(self.definition.program) if text is None else text,
            self.definition.interface.name,
            self.signature,
            str(target),
            tuple((name, repr(value)) for name, value in self.scalars.items()),
        )
