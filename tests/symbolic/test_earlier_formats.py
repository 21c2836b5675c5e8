"""What earlier versions wrote of open sizes, which were those of first dimensions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tc
from tc.artifact.definition import Parsed
from tc.artifact.executable import Executable
from tc.artifact.packing import assemble, describe, options_text
from tc.dispatch.arguments import bind_specs
from tc.dispatch.kernel import Kernel
from tc.store.wanted import Wanted, extents_of
from tc.targets.target import parse_target
from tc.tuner.report.brief import brief_of
from tests.cache import samples
from tests.symbolic.programs import MM


def _earlier(executable: Executable) -> dict[str, Any]:
    """The description in its second format."""
    data: dict[str, Any] = json.loads(describe(executable))
    convention = data["convention"]
    for tensor in convention["interface"]["tensors"]:
        sizes = tensor.pop("sizes")
        tensor["first_size"] = sizes[0] if sizes else None
    for size in convention["signature"]["symbolic"]:
        size["arguments"] = [name for name, _ in size.pop("places")]
    for operand in convention["operands"]:
        operand["layout"].pop("packed")
        extents = operand["layout"].pop("extents")
        operand["layout"]["first"] = extents[0] if extents else None
    return {**data, "format": 2}


def test_kernels_of_the_second_format_are_read() -> None:
    made = tc.define(MM).mm.compile((tc.dynamic(40), 13), (13, 5)).executable
    earlier = _earlier(made)
    parts = (options_text(made.asked), made.source, made.binary.code)
    read = assemble(json.dumps(earlier), *parts)
    assert read.convention.signature == made.convention.signature
    for size in (1, 23, 40):
        a, b = np.ones((size, 13), np.float32), np.ones((13, 5), np.float32)
        np.testing.assert_array_equal(Kernel(read)(a, b), np.full((size, 5), 13))
    with pytest.raises(ValueError, match="has no first_size; known: "):
        assemble(json.dumps(earlier | {"format": 3}), *parts)
    for broken in ({"convention": 3}, {"convention": {**earlier["convention"], "signature": {"symbolic": [1]}}}):
        with pytest.raises(ValueError, match="_Description"):
            assemble(json.dumps(earlier | broken), *parts)


def test_ingredients_and_runs_of_earlier_versions_are_read() -> None:
    f = tc.define(MM).mm
    opened = bind_specs(f.interface, ((tc.dynamic(40), 13), (13, 5)))
    wanted = Wanted(Parsed(f.program), opened, parse_target("cpu"), None)
    ingredients = wanted.ingredients("cc 12")
    assert ingredients.symbolic == "[[40,[[0,0]]]]"
    for symbolic in ("[[40,[0]]]", ingredients.symbolic):
        assert extents_of(replace(ingredients, symbolic=symbolic)) == (("1..40", "13"), ("13", "5"))
        assert replace(wanted, signature=opened.at((7,))).opened(symbolic) == wanted
    for wrong in ("[[40,[[0]]]]", "[[40,[[0,0,0]]]]", "[[40,[[0,-1]]]]", '[[40,["A"]]]', "[[40]]", "7", "[[40,[9]]]"):
        with pytest.raises(ValueError, match=r"symbolic|_Symbolic"):
            wanted.opened(wrong)
    shapes = [["A", {"shape": [40, 13]}], ["B", {"shape": [13, 5]}]]
    for symbolic_size in ({"most": 40, "arguments": ["A"]}, {"most": 40, "places": [["A", 0], ["A"], 3]}):
        settings = {"task": {"signature": {"arguments": shapes, "symbolic": [symbolic_size, 5]}}}
        brief = brief_of(replace(samples.run(), settings=json.dumps(settings)))
        assert brief.arguments == (("A", ("1..40", "13")), ("B", ("13", "5")))
