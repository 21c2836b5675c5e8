"""A problem of KernelBench: a file with a model and the inputs of its calls, with sizes that fit this machine.

The sizes are numbers that the file assigns.  They are made for large GPUs; here the largest of them are halved, one
after the other, until inputs, weights and operations are below a limit and the model still takes its inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from benchmarks.kernelbench.cost import Cost

# Sizes below this are kept: kernels, groups, heads.
_LEAST: Final = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a call: elements of inputs, weights and results, and multiply-adds.

    Sizes are halved until a call is below the first two.  Networks whose layers have sizes of their own may have more,
    up to the others.
    """

    elements: int = 1 << 24
    operations: int = 1 << 30
    most_elements: int = 1 << 28
    most_operations: int = 1 << 35


class UnfitError(Exception):
    """No sizes were found with which the model runs here."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``path``: of the file.  ``sizes``: numbers by name that take the place of those in the file."""

    path: Path
    sizes: Mapping[str, int]

    @property
    def name(self) -> str:
        """As in ``level1/1_Square_matrix_multiplication``."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def level(self) -> int:
        """The number of the level."""
        return int(self.path.parent.name.removeprefix("level"))

    def module(self) -> dict[str, Any]:
        """What the file defines, with the sizes of the problem."""
        tree = _Sizes(self.sizes).visit(ast.parse(self.path.read_text()))
        found: dict[str, Any] = {"__name__": self.path.stem, "__file__": str(self.path)}
        exec(compile(tree, str(self.path), "exec"), found)  # the user names the checkout
        return found


class _Sizes(ast.NodeTransformer):
    """Puts numbers in the place of those that a file assigns; ``found`` has those that it has.

    ``N = 2048 * 2`` assigns a number called ``N``; those of a tuple or a list have their places
    behind the name.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.found: Final[dict[str, int]] = {}
        self._sizes = sizes

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Numbers of classes and functions are none of the problem's."""
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """As of classes."""
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Changes what is assigned."""
        (target, *others) = node.targets
        if isinstance(target, ast.Name) and not others:
            node.value = self._replaced(target.id, node.value)
        return node

    def _replaced(self, name: str, value: ast.expr) -> ast.expr:
        match value:
            case ast.Tuple() | ast.List():
                value.elts = [self._replaced(f"{name}.{at}", part) for at, part in enumerate(value.elts)]
                return value
            case ast.BinOp(left=ast.List()):  # repeated
                value.left = self._replaced(name, value.left)
                return value
            case _:
                return self._number(name, value)

    def _number(self, name: str, value: ast.expr) -> ast.expr:
        parts = list(ast.walk(value))
        plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
        if not all(isinstance(part, plain) for part in parts):
            return value
        if not all(type(part.value) is int for part in parts if isinstance(part, ast.Constant)):
            return value
        found = eval(compile(ast.Expression(value), name, "eval"))  # a formula of numbers
        if not isinstance(found, int):
            return value
        self.found[name] = found
        return ast.copy_location(ast.Constant(self._sizes.get(name, found)), value)


def cost_of(problem: Problem) -> Cost | None:
    """As ``cost``; UnfitError where the file imports what is not installed."""
    from benchmarks.kernelbench.cost import cost

    try:
        return cost(problem.module())
    except ModuleNotFoundError as error:
        raise UnfitError(f"{problem.name}: imports {error.name}, which is not installed") from error


def scaled(path: Path, limits: Limits | None = None) -> Problem:
    """The problem with sizes below the limits, or with the least ones; UnfitError where these are too many."""
    own = limits or Limits()
    reading = _Sizes({})
    reading.visit(ast.parse(path.read_text()))
    sizes = reading.found
    fixed: set[str] = set()
    problem = Problem(path, sizes)
    cost = cost_of(problem)
    if cost is None:
        raise UnfitError(f"{problem.name}: the model does not take its own inputs")
    while cost.elements > own.elements or cost.operations > own.operations:
        movable = [name for name, size in sizes.items() if name not in fixed and size >= 2 * _LEAST]
        movable += [name for name in sizes if name not in fixed and "batch" in name and 1 < sizes[name] < 2 * _LEAST]
        if not movable:
            break
        name = max(movable, key=lambda own: sizes[own])
        # Others that are as large may have to stay so.
        equal = {other for other, size in sizes.items() if size == sizes[name] and other not in fixed}
        for names in ({name}, equal):
            tried = Problem(path, {**sizes, **dict.fromkeys(names, sizes[name] // 2)})
            found = cost_of(tried)
            if found is not None and found != cost:
                problem, sizes, cost = tried, dict(tried.sizes), found
                break
        else:
            fixed.add(name)
    if cost.elements > own.most_elements or cost.operations > own.most_operations:
        raise UnfitError(f"{problem.name}: {cost.elements:,} elements and {cost.operations:,} operations at the least")
    return problem
