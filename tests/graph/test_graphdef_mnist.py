"""Softmax regression on MNIST from its GraphDefs: the head, six subgraphs of its gradients, and its training."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import tc
import tc.graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import open_size
from tests.graph.comparison import same
from tests.graph.graphdefs import binary, nodes_read, text
from tests.graph.mnist_graphdef import CLASSES, DATA, FILES, PIXELS, digits, subgraphs

UPDATES = [f"GradientDescent/update_{name}/ApplyGradientDescent" for name in ("W", "b")]


@pytest.mark.parametrize("name", FILES)
def test_files_are_those_that_the_tests_write(name: str) -> None:
    """``python -m tests.graph.mnist_graphdef`` writes them anew."""
    assert (DATA / f"{name}.pb").read_bytes() == binary(FILES[name])
    assert (DATA / f"{name}.pbtxt").read_text(encoding="utf-8") == text(FILES[name])


def probabilities(given: dict[str, np.ndarray]) -> np.ndarray:
    x, weights, bias = (given[name].astype(np.float64) for name in ("x", "W", "b"))
    return np.asarray(special.softmax(x @ weights + bias, 1))


@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
def test_the_head(suffix: str) -> None:
    """``reshape(sum_[](y_ * log(softmax(x @ W + b))))``, whose sum and reshape are views of the same."""
    model, given = tc.graph.load(DATA / f"mnist_head.{suffix}"), digits(7)
    wanted = "gradients/mul_grad/Reshape"
    expected = (given["y_"] * np.log(probabilities(given))).astype(np.float32)
    for found in (model.run([wanted], given), model.reference([wanted], given)):
        same(found[wanted], expected, tolerance=1e-5)
    kernels = [node for node in model.graph().nodes if isinstance(node, Call)]
    assert [node.results for node in kernels] == [("MatMul",), ("add",), ("Softmax",), ("Log",), ("mul",)]


@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
@pytest.mark.parametrize("name", subgraphs(digits(1)))
def test_six_subgraphs(name: str, suffix: str) -> None:
    model, given = tc.graph.load(DATA / f"mnist_training.{suffix}"), digits(7)
    same(model.run([name], given)[name], subgraphs(given)[name])
    same(model.reference([name], given)[name], subgraphs(given)[name])


def test_subgraphs_that_compute_shapes_run_no_kernels() -> None:
    model = tc.graph.load(DATA / "mnist_training.pb")
    model.run(["gradients/Sum_grad/floordiv"], digits(3))
    assert "MatMul" in nodes_read(model)  # only its shape is used
    assert "gradients/MatMul_grad/MatMul_1" not in nodes_read(model)


def test_training() -> None:
    """Steps of gradient descent, each of which gives the variables anew."""
    model, given = tc.graph.load(DATA / "mnist_training.pb"), digits(32)
    weights, bias = np.zeros((PIXELS, CLASSES)), np.zeros(CLASSES)
    state: dict[str, np.ndarray] = {}
    for _ in range(3):
        found = model.run(["Mean", *UPDATES], {"x": given["x"], "y_": given["y_"], **state})
        chances = probabilities({"x": given["x"], "W": weights, "b": bias})
        assert float(found["Mean"]) == pytest.approx(-(given["y_"] * np.log(chances)).sum(1).mean(), rel=1e-5)
        errors = chances - given["y_"]
        weights -= 0.5 * given["x"].T @ errors / 32
        bias -= 0.5 * errors.mean(0)
        state = {"W": found[UPDATES[0]], "b": found[UPDATES[1]]}
    np.testing.assert_allclose(state["W"], weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state["b"], bias, rtol=1e-4, atol=1e-6)


def test_the_training_graph_for_any_number_of_rows() -> None:
    """How many elements a mean has is an open size there, which a kernel makes a number of."""
    model, n = tc.graph.load(DATA / "mnist_training.pb"), open_size("N")
    whole = tc.graph.Model.of(model.graph((n, PIXELS), (n, CLASSES)))
    given = digits(5)
    found, expected = whole(*given.values()), model(*given.values())
    assert isinstance(found, tuple)
    assert isinstance(expected, tuple)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_second_call_makes_no_new_graph() -> None:
    model, given = tc.graph.load(DATA / "mnist_head.pb"), digits(3)
    model.reference(["mul"], given)
    known = model._oracle.prepared
    model.reference(["mul"], {**given, "x": given["x"] / 2})
    assert model._oracle.prepared == known
