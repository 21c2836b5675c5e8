"""Whether what a library computes is what the node means, by the oracle and its bound for each element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.graph.ir.nodes import Call
from tc.graph.libraries.form import Form
from tc.graph.run.comprehensions import comprehension_of

if TYPE_CHECKING:
    from tc.graph.ir.nodes import HostFunction

# Products that the oracle computes in a fraction of a second.  Of larger nodes, it computes as many rows, columns,
# filters or groups, which do not depend on others; the library computes all.
CHECKED: Final = 1 << 20


def wrong(call: Call, form: Form, function: HostFunction, operands: Sequence[np.ndarray]) -> str | None:
    """What is wrong with what a function computes of these operands; None where nothing is."""
    try:
        (found,) = function(operands)
    except Exception as error:  # noqa: BLE001  # whatever a library raises, our kernels are there
        return f"{type(error).__name__}: {error}"
    if found.shape != form.result or found.dtype != operands[0].dtype:
        return f"it returns {found.dtype}{list(found.shape)}"
    given = list(operands)
    parts, chosen = form.parts, _chosen(form)
    if parts is not None and chosen is not None:
        given = [
            array if axis is None else array.take(chosen, axis)
            for array, axis in zip(operands, parts.operands, strict=True)
        ]
        found = found.take(chosen, parts.result)
    (meant,) = comprehension_of(call.program).oracle(*given).values()
    far = ~(np.abs(found.astype(np.float64) - meant.values) <= meant.error)
    if not far.any():
        return None
    where = tuple(int(index) for index in np.argwhere(far)[0])
    return f"an element is {found[where]}, and should be {meant.values[where]} within {meant.error[where]:.3g}"


def _chosen(form: Form) -> np.ndarray | None:
    """The parts that are compared, from the first to the last one; None for all."""
    if form.parts is None:
        return None
    count = form.result[form.parts.result]
    each = math.prod(form.result) // count * form.terms
    wanted = max(2, CHECKED // max(each, 1))
    return None if wanted >= count else np.unique(np.linspace(0, count - 1, wanted).astype(np.int64))
