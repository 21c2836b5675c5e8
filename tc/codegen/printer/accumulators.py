"""Prints the local variables that a loop reduces into: what declares them, and what brings them to their targets."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.printed import Printed, line
from tc.codegen.printer.totals import (
    LANE,
    TotalNames,
    fold_variable,
    folds_in,
    in_lanes,
    is_all_folded,
    lanes_of_total,
    total_of_variable,
)
from tc.codegen.text.fragment import Fragment, element, filled, infix, named
from tc.codegen.text.literals import literal_fragment
from tc.language.program.program import Reduction
from tc.language.program.within import neutral_element
from tc.polyhedral.analysis.accumulate import Accumulation, Partial, accumulator_name, halves, reached_name
from tc.polyhedral.ir.loops import Loop


@frozen
class AccumulatorPrinter:
    """Prints the accumulators of ``found`` around a loop."""

    context: Context
    loop: Loop
    found: Accumulation

    def around(self, scope: Scope) -> tuple[Printed, Printed]:
        """What stands before the loop, and what behind it."""
        before = behind = Printed(())
        for partial in self.found.partials:
            body = partial.body
            site = self.context.site(partial.instance, scope)
            target = self.context.expressions.location(body.target, body.subscripts, site)
            declared, combined = self._lines(partial, target)
            before += declared
            behind += combined
        return before, behind

    def _lines(self, partial: Partial, target: Fragment) -> tuple[Printed, Printed]:
        """What declares an accumulator, and what brings its value to the target."""
        expressions, dialect, found = self.context.expressions, self.context.dialect, self.found
        layout = self.context.layouts[partial.body.target]
        name, type, lanes = accumulator_name(partial, found), dialect.values[layout.type], found.lanes
        own = (total for total in self.loop.totals if total.statement == partial.body.name and total.buffer is None)
        total = next(own, None)
        loaded = expressions.load(target, layout.type)
        if partial.always_runs and lanes is None and total is None:
            stored = line("{} = {};", target, expressions.store(named(name), layout.type))
            return line("{} {} = {};", type, named(name), loaded).declaring(named(name)), stored
        neutral = literal_fragment(neutral_element(partial.reduction, layout.type), dialect)
        declared, combined = self._variable(name, type, neutral, lanes), Printed(())
        result, computed = name, computation_type(layout.type)
        if total is not None:
            names = TotalNames(name)
            declared += names.counters(self.loop, total, dialect)
        if total is not None and total.wide:
            folded = any(folds_in(self.loop, partial.body.name))
            result, computed, lanes = names.total, ScalarType.FLOAT64, lanes_of_total(found, folded)
            declared += self._variable(result, dialect.values[computed], Fragment("0.0") if folded else None, lanes)
            if not folded:
                combined = total_of_variable(dialect, found, names)
            elif not is_all_folded(self.loop, total):
                combined = fold_variable(dialect, found, names)
        if lanes is not None:
            combined += self._lanes_combined(partial.reduction, result, computed, lanes)
        own_result = named(result) if lanes is None else element(result, Fragment("0"))
        stored = line("{}", expressions.reduced(partial.reduction, target, own_result, layout.type, computed))
        if partial.always_runs:
            return declared, combined + stored
        reached = named(reached_name(partial, found))
        declared += line("{} {} = 0;", dialect.values[ScalarType.INT32], reached).declaring(reached)
        return declared, combined + stored.braced(filled("if ({})", reached))

    def _variable(self, name: str, type: str, value: Fragment | None, lanes: int | None) -> Printed:
        """The declaration of a variable, or of one for every lane; ``value``: what it begins with."""
        if lanes is None:
            begin = filled(" = {}", value) if value is not None else ""
            return line("{} {}{};", type, named(name), begin).declaring(named(name))
        declared = line("{} {}[{}] __attribute__((aligned(64)));", type, named(name), lanes).declaring(named(name))
        if value is None:
            return declared
        return declared + in_lanes(self.context.dialect, lanes, line("{} = {};", element(name, LANE), value))

    def _lanes_combined(self, reduction: Reduction, name: str, type: ScalarType, lanes: int) -> Printed:
        """What combines all lanes into the first one, halves of them at a time."""
        combined = Printed(())
        for kept, count in halves(lanes):
            left, right = (element(name, lane) for lane in (LANE, infix("+", LANE, Fragment(str(kept)))))
            value = self.context.expressions.combine(reduction, left, right, type)
            combined += in_lanes(self.context.dialect, count, line("{} = {};", left, value))
        return combined
