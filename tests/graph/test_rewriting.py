"""Rules of rewriting: each is proven by random evaluation, can be switched off, and is in the trace."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tc
import tc.graph
import tc.graph.ir.views
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.joining import concatenated
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.normalizations import softmax
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.operators.pointwise import Pointwise, pointwise
from tc.graph.operators.products import product
from tc.graph.operators.reductions import reduced
from tc.graph.rewrite.candidates import Candidates
from tc.graph.rewrite.constants import folded, laid_out
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.net import Net
from tc.graph.rewrite.pattern import Any, Formula, matched
from tc.graph.rewrite.rule import Rule, always
from tc.graph.rewrite.rules import RULES
from tc.graph.run.evaluate import evaluate
from tests.fuzz.graph_programs import drawn

F = ScalarType.FLOAT32
Make = Callable[[Builder, Value, Value], Value]


def formula(expression: str, type: ScalarType = F) -> Callable[..., Value]:
    def make(builder: Builder, *operands: Value) -> Value:
        return pointwise(builder, "f", expression, list(operands), type)

    return make


def number(builder: Builder, value: float) -> Value:
    return builder.constant(np.full((), value, np.float32))


add, sub, mul, div = (formula(f"{{0}} {sign} {{1}}") for sign in "+-*/")
power, neg, relu = formula("pow({0}, {1})"), formula("-{0}"), formula("max({0}, 0)")
square, absolute = formula("{0} * {0}"), formula("abs({0})")
total = formula("{0}")


def computed(builder: Builder, x: Value) -> Value:
    """Something that a call makes."""
    return formula("{0} * {0} + 1")(builder, x)


def sums(builder: Builder, x: Value, *axes: int, keep: bool = False) -> Value:
    return reduced(builder, "sum", x, axes, keep=keep)


def halves(builder: Builder, x: Value) -> tuple[Value, Value]:
    return builder.slice(x, [0, 0], [1, 1], [2, 5]), builder.slice(x, [2, 0], [1, 1], [1, 5])


def convolved(builder: Builder, x: Value, groups: int = 1) -> Value:
    """A convolution of x as one image with as many channels as it has rows; the weights are constant."""
    image = builder.reshape(x, (1, 3, 5))
    weights = np.random.default_rng(1).normal(size=(6, 3 // groups, 2)).astype(np.float32)
    bias = builder.constant(np.arange(6, dtype=np.float32))
    windows = Windows((explicit_window(spatial_sizes(1)[0], 2, 1, 1, 1, 0),))
    return convolution(builder, image, builder.constant(weights), bias, windows, groups)


def images(builder: Builder, x: Value, stride: int = 1, taps: int = 3) -> Value:
    """A convolution of 48 images that are multiples of x, large enough for transformed rows to pay."""
    factors = builder.constant(np.random.default_rng(2).normal(size=(1, 48, 15, 12)).astype(np.float32))
    made = formula("{0} * {1}")(builder, builder.reshape(x, (1, 1, 15, 1)), factors)
    weights = np.random.default_rng(1).normal(size=(48, 48, taps, taps)).astype(np.float32) / 20
    border = taps // 2
    windows = Windows(tuple(explicit_window(size, taps, stride, 1, border, border) for size in spatial_sizes(2)))
    return convolution(builder, made, builder.constant(weights), None, windows)


def one_hot_rows(builder: Builder, x: Value) -> Value:
    """Rows of a matrix, chosen by what x is rounded to, and 0 where there is none of that number."""
    index = builder.reshape(formula("floor({0})", ScalarType.INT32)(builder, x), (3, 5, 1))
    numbers = builder.constant(np.arange(4, dtype=np.int32).reshape(1, 4))
    found = formula("{0} == {1}", ScalarType.BOOL)(builder, index, numbers)
    matrix = builder.constant(np.random.default_rng(3).normal(size=(4, 7)).astype(np.float32))
    return product(builder, formula("{0}", F)(builder, found), matrix)


def channels(builder: Builder) -> Value:
    return builder.reshape(builder.constant(np.linspace(-1, 1, 6).astype(np.float32)), (6, 1))


# For each rule, a graph of x and y, both of shape (3, 5), in which it applies.
EXAMPLES: dict[str, Make] = {
    "add zero": lambda b, x, y: add(b, x, number(b, 0)),
    "add zero on the left": lambda b, x, y: add(b, number(b, 0), x),
    "subtract zero": lambda b, x, y: sub(b, x, number(b, 0)),
    "multiply by one": lambda b, x, y: mul(b, x, b.constant(np.ones((1, 5), np.float32))),
    "multiply by one on the left": lambda b, x, y: mul(b, number(b, 1), x),
    "divide by one": lambda b, x, y: div(b, x, number(b, 1)),
    "power of one": lambda b, x, y: power(b, x, number(b, 1)),
    "negated twice": lambda b, x, y: neg(b, neg(b, x)),
    "not twice": lambda b, x, y: formula("!{0}", ScalarType.BOOL)(
        b, formula("!{0}", ScalarType.BOOL)(b, formula("{0} > 0", ScalarType.BOOL)(b, x))
    ),
    "relu twice": lambda b, x, y: relu(b, relu(b, x)),
    "abs twice": lambda b, x, y: formula("abs({0})")(b, formula("abs({0})")(b, x)),
    "floor twice": lambda b, x, y: formula("floor({0})")(b, formula("floor({0})")(b, x)),
    "ceil twice": lambda b, x, y: formula("ceil({0})")(b, formula("ceil({0})")(b, x)),
    "cast to its own type": lambda b, x, y: total(b, x),
    "cast there and back": lambda b, x, y: total(b, formula("{0}", ScalarType.FLOAT64)(b, x)),
    "greatest of one": lambda b, x, y: formula("max({0}, {1})")(b, x, x),
    "least of one": lambda b, x, y: formula("min({0}, {1})")(b, x, x),
    "settled condition": lambda b, x, y: formula("{0} ? {1} : {2}")(b, b.constant(np.array([False])), x, y),
    "reshape to the same": lambda b, x, y: b.view(x, tc.graph.ir.views.Reshape((3, 5))),
    "permute to the same": lambda b, x, y: b.view(x, tc.graph.ir.views.Permute((0, 1))),
    "slice of all": lambda b, x, y: b.view(x, tc.graph.ir.views.Slice((0, 0), (1, 1), (3, 5))),
    "expand to the same": lambda b, x, y: b.view(x, tc.graph.ir.views.Expand((3, 5))),
    "reinterpret as its own type": lambda b, x, y: b.view(x, tc.graph.ir.views.Reinterpret(F)),
    "reshape twice": lambda b, x, y: b.reshape(b.reshape(x, (15,)), (5, 3)),
    "permute twice": lambda b, x, y: b.permute(b.permute(b.reshape(x, (3, 5, 1)), (1, 2, 0)), (1, 2, 0)),
    "slice twice": lambda b, x, y: b.slice(b.slice(x, [2, 0], [-1, 2], [3, 3]), [1, 1], [1, 1], [2, 2]),
    "expand twice": lambda b, x, y: b.expand(b.expand(b.reshape(x, (3, 1, 5)), (3, 2, 5)), (4, 3, 2, 5)),
    "reinterpret twice": lambda b, x, y: b.reinterpret(b.reinterpret(x, ScalarType.INT32), ScalarType.UINT32),
    "permute of ones": lambda b, x, y: b.permute(b.reshape(x, (3, 1, 5)), (1, 0, 2)),
    "pointwise before reshape": lambda b, x, y: relu(b, b.reshape(computed(b, x), (15,))),
    "pointwise before permute": lambda b, x, y: relu(b, b.permute(computed(b, x), (1, 0))),
    "pointwise of two before reshape": lambda b, x, y: add(b, b.reshape(x, (15,)), b.reshape(y, (15,))),
    "pointwise of two before permute": lambda b, x, y: add(b, b.permute(x, (1, 0)), b.permute(y, (1, 0))),
    "slice of a part": lambda b, x, y: b.slice(concatenated(b, [x, y], 0), [4, 1], [1, 2], [2, 2]),
    "concatenation of slices": lambda b, x, y: concatenated(b, halves(b, x), 0),
    "concatenation twice": lambda b, x, y: concatenated(b, [concatenated(b, [x, y], 1), x], 1),
    "reduction over ones": lambda b, x, y: sums(b, b.reshape(x, (3, 1, 5)), 1),
    "reduction of permute": lambda b, x, y: sums(b, b.permute(b.reshape(x, (3, 5, 1)), (1, 2, 0)), 0, 1),
    "reduction of squeezed": lambda b, x, y: sums(b, b.reshape(x, (1, 3, 1, 5)), 0, 3),
    "reduction twice": lambda b, x, y: sums(b, sums(b, x, 1), 0),
    "square": lambda b, x, y: power(b, x, number(b, 2)),
    "reciprocal of power": lambda b, x, y: power(b, x, number(b, -1)),
    "add negated": lambda b, x, y: add(b, x, neg(b, y)),
    "negated added": lambda b, x, y: add(b, neg(b, x), y),
    "subtract negated": lambda b, x, y: sub(b, x, neg(b, y)),
    "product of negated": lambda b, x, y: mul(b, neg(b, x), neg(b, y)),
    "divide by a power of two": lambda b, x, y: div(b, x, number(b, 4)),
    "scale and shift into weights": lambda b, x, y: formula("{0} * {1} + {2}")(
        b, convolved(b, x, 3), channels(b), number(b, 2)
    ),
    "factor into weights": lambda b, x, y: mul(b, convolved(b, x), channels(b)),
    "factor on the left into weights": lambda b, x, y: mul(b, channels(b), convolved(b, x, 3)),
    "addend into bias": lambda b, x, y: add(b, convolved(b, x), channels(b)),
    "addend on the left into bias": lambda b, x, y: add(b, number(b, 3), convolved(b, x)),
    "logarithm of softmax": lambda b, x, y: formula("log({0})")(b, softmax(b, x, (1,))),
    "literals": lambda b, x, y: formula("{0} * {2} - {1}")(b, x, y, number(b, 2.5)),
    "formula of a formula": lambda b, x, y: add(b, formula("{0} * {1}")(b, x, y), x),
    "product with one-hot rows": lambda b, x, y: one_hot_rows(b, x),
    "minimal filtering": lambda b, x, y: images(b, x),
    "minimal filtering on GPUs": lambda b, x, y: images(b, x),
    "strided convolution in panels": lambda b, x, y: images(b, x, 2),
    "convolution of points in panels": lambda b, x, y: images(b, x, 2, 1),
    "zeros around images": lambda b, x, y: convolved(b, x),
    "zero minus": lambda b, x, y: sub(b, number(b, 0), x),
    "times minus one": lambda b, x, y: mul(b, x, number(b, -1)),
    "minus one times": lambda b, x, y: mul(b, number(b, -1), x),
    "divided by minus one": lambda b, x, y: div(b, x, number(b, -1)),
    "negated difference": lambda b, x, y: neg(b, sub(b, x, y)),
    "negated product of difference": lambda b, x, y: neg(b, mul(b, sub(b, x, y), x)),
    "negated product with difference": lambda b, x, y: neg(b, mul(b, x, sub(b, x, y))),
    "negated quotient of difference": lambda b, x, y: neg(b, div(b, sub(b, x, y), y)),
    "negated quotient by difference": lambda b, x, y: neg(b, div(b, x, sub(b, x, y))),
    "difference from negated": lambda b, x, y: sub(b, neg(b, x), y),
    "negated factor": lambda b, x, y: mul(b, x, neg(b, y)),
    "negated factor on the left": lambda b, x, y: mul(b, neg(b, x), y),
    "negated divisor": lambda b, x, y: div(b, x, neg(b, y)),
    "negated dividend": lambda b, x, y: div(b, neg(b, x), y),
    "product with itself": lambda b, x, y: mul(b, x, x),
    "square of negated": lambda b, x, y: square(b, neg(b, x)),
    "square of absolute": lambda b, x, y: square(b, absolute(b, x)),
    "absolute of negated": lambda b, x, y: absolute(b, neg(b, x)),
    "relu of absolute": lambda b, x, y: relu(b, absolute(b, x)),
    "relu of square": lambda b, x, y: relu(b, square(b, x)),
    "absolute of relu": lambda b, x, y: absolute(b, relu(b, x)),
    "absolute of square": lambda b, x, y: absolute(b, square(b, x)),
    "floor of ceil": lambda b, x, y: formula("floor({0})")(b, formula("ceil({0})")(b, x)),
    "ceil of floor": lambda b, x, y: formula("ceil({0})")(b, formula("floor({0})")(b, x)),
    "pointwise between permutes": lambda b, x, y: b.permute(relu(b, b.permute(x, (1, 0))), (1, 0)),
    "one divided": lambda b, x, y: div(b, number(b, 1), x),
    "reciprocal times": lambda b, x, y: mul(b, formula("1 / {0}")(b, y), x),
    "divided by reciprocal": lambda b, x, y: mul(b, x, formula("1 / {0}")(b, y)),
}
# Errors of results of about 1, where a rule computes them in another way.
ROUNDS = {"minimal filtering": 3e-5, "minimal filtering on GPUs": 3e-5}


def built(make: Make) -> Graph:
    builder = Builder("example")
    x, y = (builder.input(name, F, (3, 5)) for name in "xy")
    return builder.finish([make(builder, x, y)])


def test_views_of_two_operands_stay_where_they_differ_or_others_use_both() -> None:
    builder = Builder("views")
    x, y = builder.input("x", F, (4, 6)), builder.input("y", F, (3, 8))
    other = add(builder, builder.reshape(x, (24,)), builder.reshape(y, (24,)))
    left, right = builder.permute(x, (1, 0)), builder.permute(relu(builder, x), (1, 0))
    both = add(builder, left, right)
    graph = builder.finish([other, both, sums(builder, left, 0), sums(builder, right, 0)])
    pairs = [rule for rule in RULES if rule.name.startswith("pointwise of two before")]
    assert len(pairs) == 2
    assert rewritten(graph, pairs)[1] == ()


def test_every_rule_has_an_example() -> None:
    assert [rule.name for rule in RULES if rule.name not in EXAMPLES] == []
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_changes_no_result(rule: Rule) -> None:
    graph = built(EXAMPLES[rule.name])
    changed, trace = rewritten(graph, (rule,))
    assert rule.name in {applied.rule for applied in trace}
    random = np.random.default_rng(0)
    error = ROUNDS.get(rule.name, 1e-6)
    for _ in range(2 if rule.name in ROUNDS else 20):
        arrays = {name: random.normal(size=(3, 5)).astype(np.float32) * 3 for name in "xy"}
        before, after = evaluate(graph, arrays), evaluate(changed, arrays)
        np.testing.assert_allclose(after[changed.outputs[0]], before[graph.outputs[0]], rtol=3e-7, atol=error)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_rule_that_fits_is_left_out_for_the_kind_of_a_node(name: str) -> None:
    net, candidates = Net(built(EXAMPLES[name])), Candidates(RULES)
    for node in net.nodes.values():
        tried = candidates.of(net, node)
        assert all(rule in tried for rule in RULES if matched(net, node, rule.pattern) is not None)


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_keep_their_results(seed: int) -> None:
    case = drawn(seed)
    changed, _ = rewritten(case.graph, RULES)
    changed = folded(changed, lambda part: list(evaluate(part, {}).values()))
    found = evaluate(changed, case.inputs)
    for name, wanted in zip(changed.outputs, case.results, strict=True):
        np.testing.assert_array_equal(found[name], wanted)


def test_minus_signs_do_not_move_to_more_elements() -> None:
    graph = built(lambda b, x, y: mul(b, x, neg(b, b.slice(y, [0, 0], [1, 1], [3, 1]))))
    assert [one.rule for one in rewritten(graph, RULES)[1] if "negated" in one.rule] == []


def test_common_subexpressions_are_computed_once() -> None:
    graph = built(lambda b, x, y: add(b, formula("exp({0})")(b, x), formula("exp({0})")(b, x)))
    assert sum(isinstance(node, Call) for node in rewritten(graph, ())[0].nodes) == 2
    assert sum(isinstance(node, Call) for node in rewritten(graph, (), share=False)[0].nodes) == 3


def test_the_trace_says_what_was_replaced() -> None:
    _, trace = rewritten(built(EXAMPLES["negated twice"]), RULES)
    assert [str(applied) for applied in trace] == ["negated twice: f_Y_2 -> x"]


def test_constants_are_computed_once() -> None:
    graph = built(lambda b, x, y: add(b, x, formula("exp({0}) + 1")(b, number(b, 2))))
    held = folded(graph, lambda part: list(evaluate(part, {}).values()))
    assert len(held.nodes) == 1
    (constant,) = held.constants.values()
    np.testing.assert_allclose(constant, np.exp(np.float32(2)) + 1, rtol=1e-6)


def test_reductions_read_constants_that_lie_in_order() -> None:
    def make(builder: Builder, x: Value, _: Value) -> Value:
        weights = builder.constant(np.arange(10, dtype=np.float32).reshape(2, 5))
        return product(builder, x, builder.permute(weights, (1, 0)))

    graph = built(make)
    held = laid_out(graph)
    (constant,) = held.constants.values()
    assert constant.shape == (5, 2)
    assert constant.flags.c_contiguous
    assert len(held.nodes) == 1
    arrays = {name: np.ones((3, 5), np.float32) for name in "xy"}
    np.testing.assert_array_equal(evaluate(held, arrays)[held.outputs[0]], evaluate(graph, arrays)[graph.outputs[0]])


def test_large_constants_are_made_in_each_call() -> None:
    def make(builder: Builder, x: Value, _: Value) -> Value:
        wide = builder.expand(number(builder, 2), (1024, 1024, 3, 5))
        return add(builder, x, formula("{0} + 1")(builder, wide))

    graph = built(make)
    assert folded(graph, lambda part: list(evaluate(part, {}).values())) == graph


def test_rules_that_undo_each_other_are_stopped() -> None:
    there = Rule(
        "there",
        Formula("{0} + {1}", (Any("x"), Any("y"))),
        lambda b, m: b.apply(Pointwise("s", "{1} + {0}", F), m.values["x"], m.values["y"]),
        always,
        "",
    )
    back = Rule(
        "back",
        Formula("{1} + {0}", (Any("x"), Any("y"))),
        lambda b, m: b.apply(Pointwise("s", "{0} + {1}", F), m.values["x"], m.values["y"]),
        always,
        "",
    )
    with pytest.raises(tc.GraphError, match="rewriting does not end: rules undo each other, among them"):
        rewritten(built(add), (there, back))


def test_a_rule_that_changes_a_shape_is_refused() -> None:
    wrong = Rule("wrong", Formula("-{0}", (Any("x"),)), lambda b, m: b.reshape(m.values["x"], (15,)), always, "")
    with pytest.raises(tc.GraphError, match=r"the rule `wrong` replaces `float32\(3, 5\) f_Y` by `float32\(15\) x"):
        rewritten(built(lambda b, x, y: neg(b, x)), (wrong,))


def test_a_model_is_rewritten_by_other_rules(capsys: pytest.CaptureFixture[str]) -> None:
    model = tc.graph.Model.of(built(EXAMPLES["negated twice"]))
    assert [applied.rule for applied in model.trace()] == ["negated twice"]
    assert model.rewrite(()).trace() == ()
    assert model.rewrite(RULES, trace=True).outputs == model.outputs
    assert capsys.readouterr().err == "negated twice: f_Y_2 -> x\n"
    x = np.ones((3, 5), np.float32)
    for other in (model, model.rewrite(())):
        np.testing.assert_array_equal(other(x, x), x)
