"""Facts of printed lines: how they add up, and which names expressions bring."""

from __future__ import annotations

from tc.base.types import ScalarType
from tc.codegen.printer.context import Scope, one_after_another
from tc.codegen.printer.printed import NO_FACTS, Facts, Printed, naming
from tc.codegen.text.fragment import Fragment, call, cast, conditional, element, infix, prefix
from tc.codegen.text.numerics import changes_in_lanes

NOTED = Fragment("faulted", names=frozenset({"faulted"}))
PLAIN = Fragment("x")


def test_facts_of_lines_behind_each_other() -> None:
    first = Facts((("f",),), scratch_bytes=64, private_bytes=128, exchanges=1, names=frozenset("a"))
    second = Facts((("g",),), scratch_bytes=192, partial_sums=8, exchanges=2, names=frozenset("b"))
    both = Facts((("f",), ("g",)), 192, 128, 8, 3, (), frozenset("ab"))
    assert first | second == both
    assert NO_FACTS | first == first == first | NO_FACTS
    assert (Printed(["1"], first) + Printed(["2"], second)).braced("if (c)") == Printed(
        ["if (c) {", "  1", "  2", "}"], both
    )


def test_every_part_knows_what_was_printed_before_it() -> None:
    function = Facts((("f",),), exchanges=2)
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
    assert wrapped.names == {"tc_checked_index", "faulted"}
    assert infix("||", PLAIN, infix("<", PLAIN, NOTED)).names == {"faulted"}
    assert naming(PLAIN.names) is NO_FACTS


def test_functions_that_change_in_lanes_are_known_by_name() -> None:
    assert changes_in_lanes({"logf"})
    assert changes_in_lanes({f"tc_erfinv_{ScalarType.FLOAT32}"}), "it calls one that does"
    assert not changes_in_lanes({"expf", "faulted", "accumulator"})
