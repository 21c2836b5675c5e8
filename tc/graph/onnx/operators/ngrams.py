"""Counts of n-grams in sequences of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.texts import definition, parameter


@frozen
class _Grams:
    """The n-grams of one length, a row each, and the place of each in the result."""

    length: int
    pool: np.ndarray
    places: np.ndarray


def _grams(operation: Operation) -> list[_Grams]:
    """The n-grams by their length, of those that count."""
    pool = operation.list("pool_int64s")
    if pool is None:
        raise operation.error("n-grams of texts are not supported; give `pool_int64s`")
    starts, places = operation.list("ngram_counts") or (), operation.list("ngram_indexes") or ()
    shortest, longest = operation.integer("min_gram_length"), operation.integer("max_gram_length")
    found, before = [], 0
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        rows = np.array(pool[start:end], np.int64).reshape(-1, length)
        own = np.array(places[before : before + len(rows)], np.int32)
        before += len(rows)
        if shortest <= length <= longest and len(rows):
            found.append(_Grams(length, rows, own))
    if before != len(places):
        raise operation.error(f"there are {before} n-grams, and {len(places)} in `ngram_indexes`")
    return found


def _counts(grams: _Grams, name: int, extent: Dimension, most: int) -> list[str]:
    """Statements that count each n-gram: its elements lie one after the other, or some apart, always as many."""
    statements: list[str] = []
    for apart in range(1, most + 2 if grams.length > 1 else 2):
        if isinstance(extent, int) and apart * (grams.length - 1) >= extent:
            break
        same = [f"X(b, i + {apart * k}) == P{name}(q, {k})" for k in range(grams.length)]
        statements.append(f"T{name}(b, q) {'+=' if statements else '+=!'} int32({' && '.join(same)})")
    return statements


def _tfidf(operation: Operation) -> Sequence[Value]:
    builder, operand, mode = operation.builder, operation.operand(0), operation.text("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise operation.error(f"the mode `{mode}` is not known; use TF, IDF or TFIDF")
    width = max(operation.list("ngram_indexes") or (-1,)) + 1
    rows = builder.reshape(operand, operand.shape if len(operand.shape) == 2 else (1, *(operand.shape or (1,))))
    parameters, operands = [parameter(rows.type, ["B", "C"], "X")], [rows]
    statements: list[str] = []
    sums: list[str] = []
    for name, grams in enumerate(_grams(operation)):
        counts = _counts(grams, name, rows.shape[1], operation.integer("max_skip_count"))
        if not counts:
            continue
        statements += counts
        sums.append(f"F(b, I{name}(q)) {'+=' if sums else '+=!'} T{name}(b, q) where I{name}(q) in 0:{width}")
        parameters += [f"int64(Q{name},{grams.length}) P{name}", f"int32(Q{name}) I{name}"]
        operands += [builder.constant(grams.pool, "pool"), builder.constant(grams.places, "places")]
    total = "F(b, o)" if sums else "0"
    given = operation.numbers("weights")
    if given:
        operands.append(builder.constant(np.array(given, np.float32), "weights"))
        parameters.append("float32(Z) W")
    weight = "W(o)" if given else "1"
    value = {"TF": total, "IDF": f"{total} > 0 ? {weight} : 0", "TFIDF": f"{total} * {weight}"}[mode]
    statements += [*sums, f"Y(b, o) = float32({value}) where b in 0:B, o in 0:{width}"]
    found = operation.one(definition("tfidf", parameters, ["Y"], statements), *operands)
    return [found if len(operand.shape) == 2 else builder.reshape(found, (width,))]


RULES: Final[dict[str, Rule]] = {"TfIdfVectorizer": _tfidf}
