"""Random legal syntax trees."""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Final

from hypothesis import strategies as st

from tc.grammar.syntax import (
    Apply,
    Assign,
    Assignment,
    Binary,
    BinaryOperator,
    Block,
    CallStatement,
    Conditional,
    ConditionClause,
    Definition,
    DistinctClause,
    ExistsClause,
    Expression,
    Extent,
    Identifier,
    LetClause,
    Name,
    Number,
    Parameter,
    RangeClause,
    Statement,
    Text,
    Unary,
    UnaryOperator,
    WhereClause,
)

from .nodes import NOWHERE

_names: Final = st.one_of(
    st.sampled_from(
        ["i", "A", "for", "where", "in", "exists", "distinct", "min", "max", "def", "float", "e5", "2LUT", "1e", "_"]
    ),
    st.builds(str.__add__, st.sampled_from(f"{ascii_letters}_"), st.text(f"{ascii_letters}{digits}_", max_size=3)),
)
_integers: Final = st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1))
_floats: Final = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
_leaves: Final[st.SearchStrategy[Expression]] = st.one_of(
    st.builds(Name, _names, st.just(NOWHERE)),
    st.builds(Number, _integers | _floats, st.just(NOWHERE)),
    st.builds(Extent, _names, st.integers(0, 3), st.just(NOWHERE)),
)


def _tuples(elements: st.SearchStrategy[Expression]) -> st.SearchStrategy[tuple[Expression, ...]]:
    return st.lists(elements, max_size=3).map(tuple)


def _applications(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Apply]:
    return st.builds(Apply, _names, _tuples(parts), st.just(NOWHERE), st.just(NOWHERE))


def _extend(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        _applications(parts),
        st.builds(Unary, st.sampled_from(UnaryOperator), parts, st.just(NOWHERE)),
        st.builds(Binary, st.sampled_from(BinaryOperator), parts, parts, st.just(NOWHERE)),
        st.builds(Conditional, parts, parts, parts, st.just(NOWHERE)),
    )


expressions: Final[st.SearchStrategy[Expression]] = st.recursive(_leaves, _extend, max_leaves=6)

_clauses: Final[st.SearchStrategy[WhereClause]] = st.one_of(
    st.builds(RangeClause, expressions, expressions, expressions, st.just(NOWHERE)),
    st.builds(LetClause, _names, expressions, st.just(NOWHERE), st.just(NOWHERE)),
    st.builds(ExistsClause, _applications(expressions), st.just(NOWHERE)),
    st.builds(DistinctClause, _names.filter(lambda name: name != "in"), st.just(NOWHERE), st.just(NOWHERE)),
    st.builds(ConditionClause, expressions, st.just(NOWHERE)),
)
_identifiers: Final = st.builds(Identifier, _names, st.just(NOWHERE))
_results: Final = st.lists(_identifiers, min_size=1, max_size=3).map(tuple)

_simple: Final[st.SearchStrategy[Statement]] = st.one_of(
    st.builds(
        Assign,
        _names,
        st.none() | _tuples(expressions),
        st.sampled_from(Assignment),
        expressions,
        st.lists(_clauses, max_size=2).map(tuple),
        st.just(NOWHERE),
        st.just(NOWHERE),
        st.just(NOWHERE),
    ),
    st.builds(CallStatement, _results, _identifiers, _tuples(expressions), st.just(NOWHERE)),
)


def _blocks(parts: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    inside = st.lists(parts, min_size=1, max_size=3).map(tuple)
    return st.builds(Block, _names, expressions, expressions, inside, st.just(NOWHERE), st.just(NOWHERE))


statements: Final[st.SearchStrategy[Statement]] = st.recursive(_simple, _blocks, max_leaves=4)

_sizes: Final = st.builds(Name, _names, st.just(NOWHERE)) | st.builds(Number, _integers, st.just(NOWHERE))
_parameters: Final = st.builds(
    Parameter,
    _names,
    st.none() | st.lists(_sizes, max_size=3).map(tuple),
    _names,
    st.just(NOWHERE),
    st.just(NOWHERE),
    st.just(NOWHERE),
)
_definitions: Final = st.builds(
    Definition,
    _names,
    st.lists(_parameters, max_size=2).map(tuple),
    _results,
    st.lists(statements, max_size=4).map(tuple),
    st.just(NOWHERE),
    st.just(NOWHERE),
)
texts: Final = st.builds(Text, st.lists(_definitions, min_size=1, max_size=2).map(tuple))
