"""``tc.Numerics``: in the options, in the key, and never changed by a search."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import tc
from tc.artifact.definition import Parsed
from tc.cache.format.ingredients import definition_in
from tc.reference.compare import compare
from tc.store.wanted import Wanted
from tc.targets.target import parse_target
from tc.tuner.space.nests import nest_of
from tc.tuner.space.space import Space
from tc.tuner.space.starts import numerics_of
from tc.tuner.trial.trial_outcome import Failed
from tests.opencl import require
from tests.turns import every_row

ANY_ORDER = tc.Numerics(deterministic=False)
ROWS = "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (y) { y(I(b), d) +=! v(b, d) where I(b) in 0:V }"
SHAPES = ((20,), (20, 3), (11, 3))
EMULATOR = parse_target("emulator")


def scatters(kernel: tc.Kernel) -> str:
    return next((stage.text for stage in kernel.stages if stage.name == "scatters"), "")


@pytest.mark.parametrize("kind", [tc.CpuOptions, tc.GpuOptions])
def test_they_are_part_of_all_options(kind: Any) -> None:
    options = kind(numerics=ANY_ORDER)
    assert options != kind()
    assert kind.from_json(options.to_json()) == options
    assert kind.from_json("{}").numerics == tc.Numerics()
    assert kind.from_json('{"numerics": {}}') == kind()
    for wrong, message in (
        ({"numerics": None}, "numerics must be tc.Numerics, got None"),
        ({"numerics": True}, "numerics must be tc.Numerics, got True"),
    ):
        with pytest.raises(tc.OptionsError, match=message):
            kind(**wrong)
    with pytest.raises(tc.OptionsError, match="deterministic must be True or False, got 1"):
        tc.Numerics(deterministic=1)  # type: ignore[arg-type]
    message = '\'deterministic\'; it belongs to numerics: write {"numerics": {"deterministic": ...}}'
    with pytest.raises(tc.OptionsError, match=re.escape(message)):
        kind.from_json('{"deterministic": false}')


@pytest.mark.parametrize(("type", "operator"), [("float", "+=!"), ("double", "*=!"), ("float16", "+=!")])
def test_sums_in_any_order(type: str, operator: str) -> None:
    f = tc.define(ROWS.replace("float", type).replace("+=!", operator)).single()
    dtype = {"float": "f4", "double": "f8", "float16": "f2"}[type]
    arrays = (
        np.random.default_rng(0).integers(0, 11, 20).astype(np.int32),
        np.random.default_rng(1).uniform(0.5, 1.5, (20, 3)).astype(dtype),
        np.zeros((11, 3), dtype),
    )
    options = tc.GpuOptions(numerics=ANY_ORDER)
    kernel = f.compile(*arrays, target="emulator", options=options)
    assert scatters(kernel) == "S0: atomic updates, in any order"
    assert compare(f.oracle(*arrays)["y"], np.asarray(kernel(*arrays))).ok
    assert scatters(f.compile(*arrays, target="emulator")) == ""
    assert "numerics=Numerics(deterministic=False, reassociate=False, products=" in f.explain(
        *arrays, target="emulator", options=options
    )


@pytest.mark.parametrize(("target", "how"), every_row(2, [("emulator", "atomic"), ("opencl", "parts")]))
def test_sums_in_float64_are_in_any_order_where_that_can_be(target: str, how: str) -> None:
    """Whoever updates only four bytes adds up in parts."""
    require(target)
    options = tc.GpuOptions(numerics=ANY_ORDER)
    kernel = tc.define(ROWS).single().compile((9999,), (9999, 3), (11, 3), target=target, options=options)
    assert any(decision.option == "accumulator" for decision in kernel.decisions)
    assert how in scatters(kernel)


def test_those_of_a_text_are_those_of_its_calls() -> None:
    f = tc.define(ROWS, options=[tc.GpuOptions(numerics=ANY_ORDER), tc.CpuOptions(threads=1)]).single()
    assert f.compile(*SHAPES, target="emulator").asked == tc.GpuOptions(numerics=ANY_ORDER)
    assert f.compile(*SHAPES).asked == tc.CpuOptions(threads=1)
    assert f.compile(*SHAPES, target="emulator", options=tc.GpuOptions()).asked == tc.GpuOptions()


def wanted(**changes: object) -> Wanted:
    f = tc.define(ROWS).single()
    signature = f.specialize(*SHAPES).signature
    found = Wanted(Parsed(f.program), signature, EMULATOR, None)
    return replace(found, **changes)  # type: ignore[arg-type]


def test_they_are_in_the_key() -> None:
    usual = wanted().ingredients("cc 12")
    other = wanted(numerics=ANY_ORDER).ingredients("cc 12")
    assert usual.key != other.key
    assert usual.program_hash != other.program_hash
    assert usual.numerics == ""
    assert tc.Numerics.from_json(other.numerics) == ANY_ORDER
    assert definition_in(other.program) == other.definition == usual.program
    # It is a comment: the program can be read as before.
    assert tc.define(other.program).single().program == tc.define(usual.program).single().program
    for options in (tc.GpuOptions(), tc.GpuOptions(block=(32,))):
        assert wanted(options=options).ingredients("cc 12") == usual
        assert wanted(options=replace(options, numerics=ANY_ORDER)).ingredients("cc 12") == other


def test_a_search_never_changes_them() -> None:
    nest = nest_of(tc.define(ROWS).single().specialize(*SHAPES))
    space, random = Space.of(tc.GpuOptions, nest, numerics=ANY_ORDER), Random(0)
    assert space.genes == Space.of(tc.GpuOptions, nest).genes
    assert space.decode(space.encode(tc.GpuOptions())) == tc.GpuOptions(numerics=ANY_ORDER)
    found = [space.decode(space.random(random)) for _ in range(20)]
    assert {one.numerics for one in found if not isinstance(one, Failed)} == {ANY_ORDER}


def test_options_to_start_from_have_one_of_them() -> None:
    starts = (tc.GpuOptions(), tc.GpuOptions(numerics=ANY_ORDER))
    assert numerics_of((), ANY_ORDER) == ANY_ORDER
    assert numerics_of(starts[:1], ANY_ORDER) == tc.Numerics()
    message = f"start has options with {tc.Numerics()} and with {ANY_ORDER}; no search mixes them: give those with one"
    with pytest.raises(tc.OptionsError, match=re.escape(message)):
        numerics_of(starts, tc.Numerics())
    f = tc.define(ROWS).single()
    message = (
        f"start has {ANY_ORDER}, and calls without options have {tc.Numerics()}; "
        "give these to tc.define as options, or leave numerics out of start"
    )
    with pytest.raises(tc.OptionsError, match=re.escape(message)):
        f.tune(*SHAPES, target="emulator", start=starts[1])
