"""``Repeated``: a plan that is called on NumPy's arrays again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tc.dispatch.warm import WarmCalls
from tc.graph.run.arrays import on_arrays

if TYPE_CHECKING:
    import numpy as np

    from tc.graph.run.execute import Execution


class Repeated:
    """Calls of a plan with its inputs in an order, all that nodes use; safe from many threads."""

    def __init__(self, execution: Execution, inputs: Sequence[str]) -> None:
        self.execution: Final = execution
        self._inputs: Final = tuple(inputs)
        self._warm: Final = WarmCalls()

    def __call__(self, arrays: tuple[np.ndarray, ...]) -> Sequence[Any]:
        """The outputs in order, for arrays whose elements lie one after the other."""
        outputs = self.execution.plan.graph.outputs
        found = self._warm.call(arrays, None)
        if found is not None:
            return found if isinstance(found, tuple) else (found,)
        call = on_arrays(dict(zip(self._inputs, arrays, strict=True)))
        results = self.execution.run(call, outputs)
        plan = self.execution.warm(call, outputs)
        if plan is not None:
            self._warm.remember(arrays, None, plan)
        return results
