"""Gradients of weights, as of convolutions: long sums of few results, of operands that lie across the lanes."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

import tc
from tc.polyhedral.pipeline import MappedProgram, map_program
from tc.reference.compare import compare
from tests.polyhedral.support import MACHINE, specialized

WEIGHTS: Final = """
def weights(float(N,C,H,W) I, float(N,F,Y,X) d) -> (K) {
    K(f,c,i,j) +=! d(n,f,h,w) * I(n,c,h+i,w+j) where i in 0:3, j in 0:3, h in 0:H-2, w in 0:W-2, Y == H-2, X == W-2
}"""
GROUPS: Final = """
def weights(float(N,G,C,H,W) I, float(N,G,F,Y,X) d) -> (K) {
    K(g,f,c,i,j) +=! d(n,g,f,h,w) * I(n,g,c,h+i,w+j)
        where i in 0:3, j in 0:3, h in 0:H-2, w in 0:W-2, Y == H-2, X == W-2
}"""
BIAS: Final = "def bias(float(N,G,F,Y,X) d) -> (B) { B(g,f) +=! d(n,g,f,h,w) }"


def mapped(text: str, *shapes: tuple[int, ...]) -> MappedProgram:
    return map_program(specialized(text, shapes), tc.CpuOptions(), MACHINE)


def test_a_part_of_an_operand_is_packed_once_for_all_channels() -> None:
    """The loop over images chooses it, and adds up; register tiles go to memory and back for each."""
    text = mapped(WEIGHTS, (8, 64, 30, 30), (8, 64, 28, 28)).stage("generate").text
    nest = re.search(r" +sequential c\d+ = 0 \.\. 7\n +float32 packed\d_d(.*\n)*", text)
    assert nest is not None, text
    packed, inside = nest[0].split("copy S0_pack")
    assert " = 0 .. 63\n" not in packed
    assert re.search(r"sequential c\d+ = 0 \.\. 63\n +float32 tile\d_K.*\n(.*\n)* +S0\(", inside), text


def test_few_steps_inside_are_not_worth_it() -> None:
    text = mapped(WEIGHTS, (8, 64, 9, 9), (8, 64, 7, 7)).stage("generate").text
    assert not re.search(r"= 0 \.\. 7\n +float32 packed\d_d", text), text


@pytest.mark.parametrize("channels", [4, 8])
def test_groups_of_few_channels_have_register_tiles_in_float32(channels: int) -> None:
    """One by one, the sums along rows of 26 elements would come back to memory too often."""
    program = mapped(GROUPS, (32, 4, channels, 28, 28), (32, 4, channels, 26, 26))
    assert not any(decision.option == "accumulator" for decision in program.attempt.decisions)
    assert [buffer.name for buffer in program.loops.promoted if "_K" in buffer.name]


def test_what_nothing_shares_has_no_tiles_around_its_sums() -> None:
    """Rows lie end to end in one image: its sum is one loop over both."""
    program = mapped(BIAS, (32, 4, 8, 26, 26))
    assert not any(decision.option == "accumulator" for decision in program.attempt.decisions)
    text = program.stage("generate").text
    assert re.search(r"S0_init\(.*\n +sequential c\d+ = 0 \.\. 31\n( +sequential.*\n)? +reduction c\d+ = 0 ", text), (
        text
    )
    assert "reduction c3 = 640 .. 675" in text


@pytest.mark.parametrize("images", [1, 3])
def test_results_are_those_of_the_oracle(images: int) -> None:
    rng = np.random.default_rng(images)

    def draw(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return rng.standard_normal(shape).astype(np.float32)

    for text, arrays, result in (
        (WEIGHTS, [draw(images, 5, 17, 15), draw(images, 7, 15, 13)], "K"),
        (WEIGHTS, [draw(images, 64, 30, 30), draw(images, 64, 28, 28)], "K"),
        (GROUPS, [draw(images, 3, 8, 17, 15), draw(images, 3, 8, 15, 13)], "K"),
        (BIAS, [draw(images, 3, 5, 17, 15)], "B"),
    ):
        f = tc.define(text).single()
        assert compare(f.oracle(*arrays)[result], np.asarray(f(*arrays))).ok
