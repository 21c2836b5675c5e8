"""Options as a flat table."""

from __future__ import annotations

import json

import pytest

from tc.artifact.packing import options_text
from tc.targets.options import CpuOptions, GpuOptions, ScheduleOptions
from tc.tuner.report.flat import Difference, columns, differences, flat_options, in_order


def test_lists_are_compared_place_by_place() -> None:
    tiles: list[list[int] | None] = [None, [], [8], [8, 16]]
    found = columns([json.dumps({"schedule": {"tile": tile}, "on": True}) for tile in tiles])
    assert found == {
        "on": ("yes",) * 4,
        "schedule.tile[0]": ("auto", "none", "8", "8"),
        "schedule.tile[1]": ("auto", "none", "none", "16"),
    }


def test_an_option_that_is_never_a_list_is_one_column() -> None:
    assert columns(['{"tile": null}', '{"tile": []}', "{}"]) == {"tile": ("auto", "[]", "auto")}


def test_only_what_differs_is_a_difference() -> None:
    before = CpuOptions()
    after = CpuOptions(ScheduleOptions(tile=(8, 0)), vectorize=False)
    assert differences(options_text(before), options_text(before)) == ()
    assert differences(options_text(before), options_text(after)) == (
        Difference("schedule.tile", "auto", "[8, 0]"),
        Difference("vectorize", "yes", "no"),
    )
    assert Difference("block", "(not stated)", "auto") in differences(options_text(before), options_text(GpuOptions()))


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", "{", "[" * 100_000, '{"a": ' * 50_000, "1" * 5000, '{"a": ' + "1" * 5000 + "}"]
)
def test_text_that_holds_no_options_has_none(text: str) -> None:
    assert flat_options(text) == {}


def test_what_lies_deep_is_one_value() -> None:
    text = '{"a": ' * 90 + "1" + "}" * 90
    assert list(flat_options(text)) == ["a.a.a.a.a"]
    assert columns([text, "{}"]) == {"a.a.a.a.a": ("(not an option)", "auto")}


def test_values_stand_in_the_order_of_numbers() -> None:
    assert in_order(["16", "8", "none", "128", "auto", "8", "-1"]) == ("auto", "none", "-1", "8", "16", "128")
