"""Compares what is accepted, refused and computed with what the points of a case say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import tc
from tests.quasi_affine.cases import Case
from tests.quasi_affine.terms import evaluate


@dataclass(frozen=True, slots=True)
class Verdict:
    """``fault``: what is wrong with the product's answer; None if nothing is."""

    case: Case
    accepted: bool
    fault: str | None


def judge(case: Case) -> Verdict:
    """Defines and specializes a case: it is accepted if, and only if, it reads and writes what there is.

    What is wrong for all sizes from 1 on may be refused for a size of 0, too.
    """
    runs, fits = case.runs(), case.fits()
    try:
        comprehension = tc.define(case.definition()).single()
        shape = comprehension.output_shapes(*case.arguments())["y"]
    except tc.RangeError as error:
        if not runs:
            return Verdict(case, False, None)
        if fits:
            return Verdict(case, False, f"refused, though it fits: {error}")
        return Verdict(case, False, lie(case, error))
    except tc.SemanticError as error:
        is_overlap = "written by more than one instance" in str(error)
        return Verdict(case, False, None if is_overlap and not (fits and runs) else f"refused, though it fits: {error}")
    if not fits:
        return Verdict(case, True, "accepted, though it leaves a tensor or does not write every element once")
    if case.written() and shape != case.shape():
        return Verdict(case, True, f"`y` has shape {shape}, should have {case.shape()}")
    return Verdict(case, True, None)


def lie(case: Case, error: tc.RangeError) -> str | None:
    """What is false in a refusal: it must show an index at which it is true."""
    for diagnostic in error.diagnostics:
        message = diagnostic.message
        if "never written" in message or "more than one instance" in message:
            found = re.search(r"`y\(([^)]*)\)`", message)
            if found is None:
                return f"no element in: {message}"
            if " for " in message or diagnostic.span is None:
                continue
            element = tuple(int(part) for part in found.group(1).split(","))
            count = Counter(case.written())[element]
            if case.written() and (count != 0 if "never" in message else count < 2):
                return f"`y{element}` is written {count} times: {message}"
        elif " leaves " in message or "below 0" in message:
            place = {name: int(value) for name, value in re.findall(r"(\w+) = (-?\d+)", message)}
            fault = _wrong_place(case, message, {**case.values, **place})
            if fault is not None:
                return fault
        elif "never negative" not in message and "contradictory" not in message:
            return f"an unknown refusal: {message}"
    return None


def _wrong_place(case: Case, message: str, values: dict[str, int]) -> str | None:
    extents = {f"X{d}": extent for d, extent in enumerate(case.extents)}
    values = {**extents, **values}
    point = {name: values[name] for name, _, _ in case.ranges if name in values}
    if point not in [{n: p[n] for n in point} for p in case.points(values)]:
        return f"no instance of the case: {message}"
    if "below 0" in message:
        outside = any(evaluate(e, values) < 0 for e in case.left)
    else:
        inside = case.guard is None or evaluate(case.guard, values)
        positions = zip(case.read, (values[f"X{d}"] for d in range(len(case.extents))), strict=True)
        outside = bool(inside) and any(not 0 <= evaluate(e, values) < extent for e, extent in positions)
    return None if outside else f"inside at that index: {message}"


def results(cases: Sequence[Case], target: str) -> Iterator[tuple[Case, str]]:
    """Runs several cases that fit as one definition, and yields those whose results differ from their points'."""
    suffixes = [f"_{number}" for number in range(len(cases))]
    parameters = ", ".join(case.parameters(suffix) for case, suffix in zip(cases, suffixes, strict=True))
    statements = " ".join(case.statement(suffix) for case, suffix in zip(cases, suffixes, strict=True))
    names = [f"y{suffix}" for suffix in suffixes]
    comprehension = tc.define(f"def f({parameters}) -> ({', '.join(names)}) {{ {statements} }}").single()
    arguments = [argument for case in cases for argument in case.arguments()]
    shapes = comprehension.output_shapes(*arguments)
    updated = [name for case, name in zip(cases, names, strict=True) if case.operator == "+="]
    outputs = {name: np.zeros(shapes[name], np.int32) for name in updated} or None
    found: object
    if target == "reference":
        found = comprehension.reference(*arguments, out=outputs)
    else:
        found = comprehension(*arguments, out=outputs, target=target)
    values = found if isinstance(found, tuple) else (found,)
    for case, actual in zip(cases, values, strict=True):
        expected = case.result()
        if case.written() and not np.array_equal(np.asarray(actual), expected):
            yield case, f"{target}: {np.asarray(actual).tolist()} instead of {expected.tolist()}"


def describe(case: Case) -> str:
    """The case, for a report."""
    return f"{case.definition()}  with N = {case.size}, s = {case.scalar}, x of {case.extents}"
