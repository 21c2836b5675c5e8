"""What steps of blocks repeat, on processors: sums in register tiles, packed operands, lanes below the steps."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

import tc
from tc.polyhedral.pipeline import MappedProgram, map_program
from tc.reference.compare import compare
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import one_in

LSTM: Final = """
def lstm(float(T,B,I) x, float(4,H,I) W, float(4,H,H) U, float(B,H) h0, float(B,H) c0) -> (h) {
    h(0,b,i) = h0(b,i)
    c(b,i) = c0(b,i)
    for t in 0:T {
        p(t,b,g,i) +=! x(t,b,k) * W(g,i,k)
        q(t,b,g,i) +=! h(t,b,j) * U(g,i,j)
        z(b,g,i) = p(t,b,g,i) + q(t,b,g,i)
        c(b,i) = c(b,i) / (1 + exp(-z(b,1,i))) + tanh(z(b,2,i)) / (1 + exp(-z(b,0,i)))
        h(t+1,b,i) = tanh(c(b,i)) / (1 + exp(-z(b,3,i)))
    }
}"""
RNN: Final = """
def rnn(float(T,B,H) x, float(H,H) U, float(B,H) h0) -> (h) {
    h(0,b,i) = h0(b,i)
    for t in 0:T {
        q(b,i) +=! h(t,b,j) * U(i,j)
        h(t+1,b,i) = tanh(x(t,b,i) + q(b,i))
    }
}"""
LONG: Final = """
def long(float(T,B,K) x, float(K,I) w) -> (h) {
    for t in 0:T {
        z(b,i) +=! x(t,b,k) * w(k,i)
        h(t,b,i) = z(b,i)
        z(b,i) = 2 * h(t,b,i)
    }
}"""
GATES: Final = """
def gates(float(T,B,H) x, float(H) v, float(B,H) c0) -> (h) {
    c(b,i) = c0(b,i)
    for t in 0:T {
        c(b,i) = c(b,i) * v(i) + x(t,b,i)
        h(t,b,i) = tanh(c(b,i))
    }
}"""


def mapped(text: str, *shapes: tuple[int, ...]) -> MappedProgram:
    return map_program(specialized(text, shapes), tc.CpuOptions(), MACHINE)


def is_wide(program: MappedProgram) -> bool:
    """Whether something is accumulated in float64."""
    return any(decision.option == "accumulator" for decision in program.attempt.decisions)


def lstm_of(steps: int, batch: int, hidden: int) -> MappedProgram:
    weights = (4, hidden, hidden)
    return mapped(LSTM, (steps, batch, hidden), weights, weights, (batch, hidden), (batch, hidden))


@pytest.mark.parametrize("sizes", [(20, 32, 96), (5, 40, 100), (7, 31, 90)], ids=str)
def test_long_sums_of_steps_stay_in_float32(sizes: tuple[int, int, int]) -> None:
    program = lstm_of(*sizes)
    assert not is_wide(program)
    tiles = {buffer.name.partition("_")[2]: buffer for buffer in program.loops.promoted if "tile" in buffer.name}
    assert set(tiles) == {"p", "q"}
    # A gate is in a loop inside of the one over the elements that all statements share.
    assert all(np.prod(tile.layout.shape) >= 32 for tile in tiles.values())


def test_sums_that_each_step_begins_anew_are_as_long_as_one() -> None:
    """An element holds one sum after the other, each of which is stored and loaded again a few times."""
    program = mapped(LONG, (90, 32, 4200), (4200, 48))
    text = program.stage("generate").text
    assert "copy S0_load" in text
    assert "copy S0_store" in text
    assert not is_wide(program)


def test_what_stays_in_a_tile_needs_no_memory() -> None:
    assert [buffer.name for buffer in lstm_of(20, 32, 96).loops.temporaries] == ["p"]


def test_operands_are_packed_once_for_all_steps() -> None:
    """As large as they are: steps read them anew in any case."""
    text = lstm_of(20, 32, 96).stage("generate").text
    packing, steps = text.index("copy S3_pack"), text.index("sequential c2 = 0 .. 19")
    assert packing < steps
    # In panels of 48 lanes, each in the order of the steps of the product.
    assert re.search(r"float32 packed\d+_U\[2, 48, 4, 96\]", text)


def test_loops_that_choose_a_part_of_a_packed_operand_stand_outside() -> None:
    """``W`` does not fit as a whole; parts of it do, and are packed once each, not for each tile of steps."""
    text = lstm_of(10, 32, 256).stage("generate").text
    steps = r"sequential (c\d+) = 0 \.\. 1\n(.*\n)*? +S2_init\(5 \* \1 "
    assert re.search(rf"copy S2_pack.*\n +{steps}", text), text


def test_what_steps_write_is_not_packed() -> None:
    """Lanes along rows would need a copy of the states, which change in each step."""
    program = lstm_of(5, 32, 90)
    assert not any("packed" in buffer.name and buffer.name.endswith("_h") for buffer in program.loops.promoted)
    lanes = re.findall(r"vector c\d+ = 0 \.\. (\d+)\n +S3\(", program.stage("generate").text)
    assert lanes
    assert lanes[0] != "15"  # all rows of a chunk


def test_lanes_of_independent_recurrences_stand_below_the_steps() -> None:
    text = mapped(GATES, (5, 3, 200), (200,), (3, 200)).stage("generate").text
    assert re.search(r"sequential c\d+ = 0 \.\. 4\n +vector c\d+ = .*\n +S1\(", text), text


@pytest.mark.parametrize("points", [8_192, 9_001, 1 << 19])
def test_tiles_of_a_stencil_stay_in_their_step(points: int) -> None:
    """So much work in one statement is tiled, and spread over the cores step by step."""
    text = f"""
    def heat(float(N) x) -> (y) {{
        u(0,i) = x(i)
        for t in 0:3 {{ u(t+1,i) = u(t,(i+1)%N) + u(t,(i+{points - 1})%N) where i in 0:N }}
        y(i) = u(3,i)
    }}"""
    program = mapped(text, (points,)).stage("generate").text
    assert re.search(r"sequential c\d+ = 0 \.\. 2\n +(sequential|parallel) c\d+ = ", program), program


@one_in(2)
@pytest.mark.parametrize("sizes", [(3, 5, 70), (2, 17, 66), (4, 1, 130)], ids=str)
def test_recurrences_compute_what_the_oracle_says(sizes: tuple[int, int, int]) -> None:
    steps, batch, hidden = sizes
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return (rng.standard_normal(shape) / 8).astype(np.float32)

    states = draw(batch, hidden)
    for text, arrays in (
        (LSTM, [draw(steps, batch, hidden), draw(4, hidden, hidden), draw(4, hidden, hidden), states, states]),
        (RNN, [draw(steps, batch, hidden), draw(hidden, hidden), states]),
        (GATES, [draw(steps, batch, hidden), draw(hidden), states]),
    ):
        function = tc.define(text).single()
        assert compare(function.oracle(*arrays)["h"], np.asarray(function(*arrays))).ok
