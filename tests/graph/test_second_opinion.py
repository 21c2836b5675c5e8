"""What rewriting reaches costs no more than what equality saturation finds with the same equations, in any order.

The worklist applies each rule as soon as it fits, and takes nothing back.  egglog (Zhang et al., *Better Together:
Unifying Datalog and Equality Saturation*, PLDI 2023) keeps all forms of a term, and extracts the cheapest one.
"""

from __future__ import annotations

import random
from typing import Final, TypeAlias

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, View
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import Pointwise, pointwise
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.rules import RULES

bindings = pytest.importorskip(
    "egglog.bindings", reason="egglog is not installed, which takes 300 MB with what it needs"
)

# An operator and its operands, or an input or a number.
Term: TypeAlias = "tuple[str, *tuple[Term, ...]] | str | float"

# By name in egglog, with what it costs: some operations take as long as several.
UNARY: Final = {
    "Neg": ("-{0}", 1), "Relu": ("max({0}, 0)", 1), "Abs": ("abs({0})", 1), "Floor": ("floor({0})", 1),
    "Ceil": ("ceil({0})", 1), "Square": ("{0} * {0}", 1), "Reciprocal": ("1 / {0}", 4),
}  # fmt: skip
BINARY: Final = {
    "Add": ("{0} + {1}", 1), "Sub": ("{0} - {1}", 1), "Mul": ("{0} * {1}", 1), "Div": ("{0} / {1}", 4),
    "Pow": ("pow({0}, {1})", 20), "Max": ("max({0}, {1})", 1), "Min": ("min({0}, {1})", 1),
}  # fmt: skip
TURN: Final = "Turn"
COSTS: Final = dict((*UNARY.values(), *BINARY.values()))
# egglog counts inputs and numbers, too, as 1 each.
FAR: Final = 1000
NUMBERS: Final = (-1.0, 0.0, 1.0, 2.0, 4.0)

EQUATIONS: Final = """
(rewrite (Add a (Num 0.0)) a) (rewrite (Sub a (Num 0.0)) a) (rewrite (Mul a (Num 1.0)) a) (rewrite (Div a (Num 1.0)) a)
(rewrite (Sub (Num 0.0) a) (Neg a)) (rewrite (Mul a (Num -1.0)) (Neg a)) (rewrite (Div a (Num -1.0)) (Neg a))
(rewrite (Pow a (Num 1.0)) a) (rewrite (Pow a (Num 2.0)) (Square a)) (rewrite (Pow a (Num -1.0)) (Reciprocal a))
(rewrite (Div a (Num 2.0)) (Mul a (Num 0.5))) (rewrite (Div a (Num 4.0)) (Mul a (Num 0.25)))
(rewrite (Div (Num 1.0) a) (Reciprocal a)) (rewrite (Mul a (Reciprocal b)) (Div a b))
(rewrite (Add a b) (Add b a)) (rewrite (Mul a b) (Mul b a)) (birewrite (Mul a a) (Square a))
(rewrite (Neg (Neg a)) a) (birewrite (Add a (Neg b)) (Sub a b)) (birewrite (Neg (Sub a b)) (Sub b a))
(birewrite (Neg (Mul a b)) (Mul (Neg a) b)) (birewrite (Neg (Div a b)) (Div (Neg a) b))
(birewrite (Neg (Div a b)) (Div a (Neg b))) (birewrite (Neg (Add a b)) (Sub (Neg a) b))
(rewrite (Square (Neg a)) (Square a)) (rewrite (Square (Abs a)) (Square a)) (rewrite (Abs (Neg a)) (Abs a))
(rewrite (Relu (Relu a)) (Relu a)) (rewrite (Abs (Abs a)) (Abs a)) (rewrite (Relu (Abs a)) (Abs a))
(rewrite (Abs (Relu a)) (Relu a)) (rewrite (Relu (Square a)) (Square a)) (rewrite (Abs (Square a)) (Square a))
(rewrite (Floor (Floor a)) (Floor a)) (rewrite (Ceil (Ceil a)) (Ceil a)) (rewrite (Floor (Ceil a)) (Ceil a))
(rewrite (Ceil (Floor a)) (Floor a)) (rewrite (Max a a) a) (rewrite (Min a a) a)
(rewrite (Turn (Turn a)) a)
"""
# As the rules have it: a permutation goes past one operator to meet another one.
TURNED: Final = " ".join(
    (
        *(f"(rewrite (Turn ({name} (Turn a))) ({name} a))" for name in UNARY),
        *(f"(rewrite ({name} (Turn a) (Turn b)) (Turn ({name} a b)))" for name in BINARY),
    )
)


def drawn(chance: random.Random, depth: int) -> Term:
    """A term of inputs; numbers stand beside what depends on them, on the right more often than not."""
    if depth == 0:
        return chance.choice("xy")
    kind = chance.random()
    if kind < 0.15:
        return (TURN, drawn(chance, depth - 1))
    if kind < 0.5:
        return (chance.choice([name for name in UNARY if name != "Reciprocal"]), drawn(chance, depth - 1))
    name = chance.choice(list(BINARY))
    if name == "Pow":
        return (name, drawn(chance, depth - 1), chance.choice((1.0, 2.0, -1.0)))
    if chance.random() < 0.4:
        number = chance.choice(NUMBERS[(name == "Div") * 2 :])
        return (
            (name, drawn(chance, depth - 1), number)
            if chance.random() < 0.7
            else (name, number, drawn(chance, depth - 1))
        )
    return (name, drawn(chance, depth - 1), drawn(chance, chance.randrange(depth)))


def graph_of(term: Term) -> Graph:
    builder = Builder("term")
    inputs = {name: builder.input(name, ScalarType.FLOAT32, (3, 3)) for name in "xy"}

    def made(term: Term) -> Value:
        if isinstance(term, str):
            return inputs[term]
        if isinstance(term, float):
            return builder.constant(np.full((), term, np.float32))
        name, *operands = term
        values = [made(operand) for operand in operands]
        if name == TURN:
            return builder.permute(values[0], (1, 0))
        expression = (UNARY | BINARY)[name][0]
        return pointwise(builder, name.lower(), expression, values, ScalarType.FLOAT32)

    return builder.finish([made(term)])


def reached(graph: Graph) -> int:
    """The cost of the graph after rewriting; what several operators use counts once."""
    found, _ = rewritten(graph, [rule for rule in RULES if not rule.late])
    makers = found.producers()

    total, waiting, seen = 0, list(found.outputs), set[str]()
    while waiting:
        name = waiting.pop()
        node = makers.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        waiting += node.operands
        match node:
            case Call(operator=Pointwise(expression=expression)):
                total += COSTS[expression]
            case View():
                total += 1
            case _:
                raise AssertionError(node)
    return total


def text(term: Term) -> str:
    if isinstance(term, tuple):
        name, *operands = term
        return f"({' '.join((name, *map(text, operands)))})"
    return f'(Var "{term}")' if isinstance(term, str) else f"(Num {term})"


def saturated(term: Term) -> tuple[int, str]:
    """The cost of the cheapest term that is equal, and the term."""
    kinds = " ".join(
        (
            *(f"({name} E :cost {FAR * cost})" for name, (_, cost) in UNARY.items()),
            *(f"({name} E E :cost {FAR * cost})" for name, (_, cost) in BINARY.items()),
        )
    )
    program = f"""
(datatype E (Num f64 :cost 0) (Var String :cost 0) (Turn E :cost {FAR}) {kinds})
{EQUATIONS} {TURNED}
(let $term {text(term)})
(run 7)
(extract $term)
"""
    egraph = bindings.EGraph()
    (best,) = [
        output
        for output in egraph.run_program(*egraph.parse_program(program))
        if isinstance(output, bindings.ExtractBest)
    ]
    return best.cost // FAR, str(best).strip()


@pytest.mark.parametrize("seed", range(200))
def test_rewriting_reaches_the_cost_of_equality_saturation(seed: int) -> None:
    term = drawn(random.Random(seed), 4)
    ours, (best, cheapest) = reached(graph_of(term)), saturated(term)
    assert ours <= best, f"{text(term)} is rewritten to a cost of {ours}, where {cheapest} has {best}"
