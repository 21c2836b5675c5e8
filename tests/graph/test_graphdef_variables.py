"""Variables of GraphDefs, what assigns to them, and the order that control dependencies make."""

from __future__ import annotations

import numpy as np
import pytest

import tc
import tc.graph
from tests.graph.comparison import f32, same
from tests.graph.graphdefs import Shape, Type, const, model_of, node, placeholder
from tests.graph.mnist_graphdef import variable

FLOAT, INT = Type("float32"), Type("int32")


def test_what_is_only_waited_for_is_not_computed() -> None:
    """It may be of any operator, in a cycle, and need inputs that are missing."""
    nodes = [
        placeholder("x"),
        placeholder("unused"),
        node("loop", "NextIteration", "merge"),
        node("merge", "Merge", "loop"),
        node("assert", "Assert", "unused", "^loop"),
        node("y", "Neg", "x", "^assert"),
    ]
    same(model_of(*nodes).reference(["y"], {"x": f32([1])})["y"], f32([-1]))
    nodes[3] = node("merge", "Merge", "loop", "^y")
    with pytest.raises(tc.GraphError, match=r"node `y` \(Neg\) depends on itself"):
        model_of(*nodes).reference(["y"], {"x": f32([1])})


def test_variables_are_given_or_initialized() -> None:
    nodes = [
        const("start", [1, 2], "float32"),
        node("double", "Add", "start", "start"),
        node("v", "VarHandleOp", dtype=FLOAT, shape=Shape((2,))),
        node("set", "AssignVariableOp", "v", "double", dtype=FLOAT),
        node("y", "ReadVariableOp", "v", dtype=FLOAT),
    ]
    model = model_of(*nodes)
    same(model.reference(["y"], {})["y"], f32([2, 4]))
    same(model.reference(["v", "set"], {})["set"], f32([2, 4]))
    same(model.reference(["y"], {"v": f32([5, 6])})["y"], f32([5, 6]))


def test_the_assignment_of_a_variable_with_its_name_initializes_it() -> None:
    """Others restore it, or change it."""
    nodes = [
        const("one", [1], "float32"),
        const("two", [2], "float32"),
        node("v", "Variable", dtype=FLOAT, shape=Shape((1,))),
        node("save/Assign", "Assign", "v", "two"),
        node("v/Assign", "Assign", "v", "one"),
        node("y", "Identity", "v"),
    ]
    same(model_of(*nodes).reference(["y"], {})["y"], f32([1]))
    same(model_of(*nodes[:4], nodes[5]).reference(["y"], {})["y"], f32([2]))


def test_a_variable_that_is_read_after_an_assignment_has_the_new_value() -> None:
    nodes = [
        *variable("v", (2,)),
        const("one", [1, 1], "float32"),
        node("more", "AssignAdd", "v", "one"),
        node("group", "NoOp", "^more"),
        node("again", "AssignSub", "v", "one", "^group"),
        node("before", "Identity", "v"),
        node("after", "Identity", "v", "^group"),
        node("last", "Identity", "v", "^again"),
        node("both", "AddV2", "after", "v"),
    ]
    model, given = model_of(*nodes), {"v": f32([5, 6])}
    found = model.reference(["before", "after", "last", "both", "more"], given)
    same(found["before"], f32([5, 6]))
    same(found["more"], f32([6, 7]))
    same(found["after"], f32([6, 7]))
    same(found["last"], f32([5, 6]))
    same(found["both"], f32([12, 14]))
    unordered = [*nodes, node("other", "AssignAdd", "v", "one"), node("z", "Identity", "v", "^other", "^more")]
    with pytest.raises(tc.GraphError, match="node `z` reads the variable `v` after `more` and `other`, in no order"):
        model_of(*unordered).reference(["z"], given)


@pytest.mark.parametrize("name", ["AssignAddVariableOp", "AssignSubVariableOp"])
def test_resources_are_changed(name: str) -> None:
    nodes = [
        node("v", "VarHandleOp", dtype=FLOAT, shape=Shape((1,))),
        const("one", [1], "float32"),
        node("y", name, "v", "one"),
    ]
    same(model_of(*nodes).reference(["y"], {"v": f32([5])})["y"], f32([6 if "Add" in name else 4]))
    shape = node("s", "VariableShape", "v", out_type=Type("int64"))
    same(model_of(*nodes[:1], shape).reference(["s"], {"v": f32([5])})["s"], np.array([1]))
    rate = const("rate", 0.5, "float32")
    step = node("y", "ResourceApplyGradientDescent", "v", "rate", "one")
    same(model_of(*nodes[:2], rate, step).reference(["y"], {"v": f32([5])})["y"], f32([4.5]))
