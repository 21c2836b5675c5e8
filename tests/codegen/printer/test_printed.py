"""Facts of printed lines: how they add up, and which names expressions bring."""

from __future__ import annotations

from tc.base.grid import GridKernel, Steps
from tc.base.types import ScalarType
from tc.codegen.printer.context import Scope, one_after_another
from tc.codegen.printer.printed import ELSE, NO_FACTS, Facts, Printed, line, naming, together
from tc.codegen.text.fragment import Fragment, Template, call, cast, conditional, element, filled, infix, named, prefix
from tc.codegen.text.numerics import changes_in_lanes

NOTED = named("faulted")
PLAIN = Fragment("1")
GRID = GridKernel("k", (1, 1, 1), (1, 1, 1), 0, ())
FIRST, SECOND = Printed(["f"]), Printed(["g"])


def test_facts_of_lines_behind_each_other() -> None:
    first = Facts((FIRST,), scratch_bytes=64, private_bytes=128, exchanges=1, names=frozenset("a"))
    second = Facts((SECOND,), scratch_bytes=192, sums=8, exchanges=2, names=frozenset("b"))
    both = Facts((FIRST, SECOND), 192, 128, 8, 3, names=frozenset("ab"))
    assert first | second == both
    one = Facts(grids=(GRID,), steps=(Steps(0, 0, 0, 3, 1),))
    assert (one | one).steps == (Steps(0, 0, 0, 3, 1), Steps(1, 1, 0, 3, 1))
    assert NO_FACTS | first == first == first | NO_FACTS
    assert (Printed(["1"], first) + Printed(["2"], second)).braced(Fragment("if (1)")) == Printed(
        ["if (1) {", "  1", "  2", "}"], both
    )


def test_lines_mention_what_their_parts_mention() -> None:
    assigned = line("{} = {};", element("t_y", named("c0")), call("expf", named("s_x")))
    assert assigned == Printed(["t_y[c0] = expf(s_x);"], naming(frozenset({"t_y", "c0", "expf", "s_x"})))
    barrier = line(Template("tc_barrier(team, {number});", frozenset({"tc_barrier", "team"})), number=3)
    assert barrier == Printed(["tc_barrier(team, 3);"], naming(frozenset({"tc_barrier", "team"})))
    guarded = together((assigned, barrier)).braced(filled("if ({} < {})", named("c1"), 7))
    assert guarded.lines == ["if (c1 < 7) {", "  t_y[c0] = expf(s_x);", "  tc_barrier(team, 3);", "}"]
    assert guarded.facts.names == {"t_y", "c0", "expf", "s_x", "tc_barrier", "team", "c1"}
    assert barrier.braced(ELSE).facts == barrier.facts
    assert together(()) == Printed([])


def test_every_part_knows_what_was_printed_before_it() -> None:
    function = Facts((FIRST,), exchanges=2)
    seen: list[tuple[int, int]] = []

    def printing(part: int, scope: Scope) -> Printed:
        seen.append((scope.functions, scope.exchanges))
        return Printed([str(part)], function if part % 2 else NO_FACTS)

    printed = one_after_another(range(4), Scope({}, functions=5), printing)
    assert printed.lines == ["0", "1", "2", "3"]
    assert seen == [(5, 0), (5, 0), (6, 2), (6, 2)]
    assert len(printed.facts.functions) == 2


def test_expressions_hand_on_the_names_of_their_parts() -> None:
    index = call("tc_checked_index", PLAIN, prefix("&", NOTED))
    wrapped = conditional(PLAIN, infix("+", cast("float", element("t_x", index)), PLAIN), PLAIN)
    assert wrapped.names == {"t_x", "tc_checked_index", "faulted"}
    assert infix("||", PLAIN, infix("<", PLAIN, NOTED)).names == {"faulted"}
    assert naming(PLAIN.names) is NO_FACTS


def test_functions_that_change_in_lanes_are_known_by_name() -> None:
    assert changes_in_lanes({"log2f"})
    assert changes_in_lanes({f"tc_erfinv_{ScalarType.FLOAT32}"}), "it calls one that does"
    assert not changes_in_lanes({"expf", "faulted", "accumulator"})
