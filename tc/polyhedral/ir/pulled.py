"""``PulledStatement``: a statement whose instances are counted in another way, for the proof that they are the same."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.frozen import frozen
from tc.language.program.affine_form import affine_form
from tc.language.program.program import Binary, Expression, IteratorReference, Literal


@frozen
class PulledStatement:
    """The statement called ``name``; ``iterators``: those that it had, in terms of those that it has now."""

    name: str
    iterators: Mapping[str, Expression]

    def __str__(self) -> str:
        return f"{self.name}: " + ", ".join(f"{name} = {_text(value)}" for name, value in self.iterators.items())


def _text(value: Expression) -> str:
    """An affine expression of iterators, or quotients and remainders of one."""
    match value:
        case Binary(operator, IteratorReference() | Binary() as divided, Literal(size)) if operator.value in "/%":
            return f"{_text(divided)} {operator.value} {size}"
        case _:
            pass
    form = affine_form(value)
    parts = [(term.name, own) for term, own in form.factors.items() if isinstance(term, IteratorReference)]
    terms = [f"{'-' if own < 0 else '+'} {'' if abs(own) == 1 else f'{abs(own)}*'}{name}" for name, own in parts]
    terms += [f"{'-' if form.constant < 0 else '+'} {abs(form.constant)}"] if form.constant else []
    return " ".join(terms).removeprefix("+ ") or "0"
