"""Statements that write where data say: what their indices, and the range that an instance owns, depend on."""

from __future__ import annotations

from tc.language.program.program import iterators_in
from tc.language.program.written_elements import scatters
from tc.polyhedral.ir.loops import StatementBody


def is_scatter(body: StatementBody) -> bool:
    """Whether data say which element an instance writes."""
    return any(map(scatters, body.subscripts))


def owners_of(body: StatementBody) -> frozenset[str]:
    """The iterator that counts the owners of what a scatter writes; none without."""
    return frozenset() if body.owned is None else iterators_in((body.owned.begin, body.owned.end))


def placing(body: StatementBody) -> frozenset[str]:
    """The iterators on which depends, through data, where or whether an instance writes."""
    return iterators_in(filter(scatters, body.subscripts)) | owners_of(body)
