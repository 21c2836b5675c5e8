"""Statements that run once for every element that they write, whatever subscripts it is written at.

``y(i/2) +=! a(i)`` initializes every element of ``y`` once, though two instances of the update share it: the instances
of the initialization are the elements themselves, the image of the iteration domain under the subscripts.  In a block,
that is so in each of its steps.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.program.program import Expression, IteratorReference, Read, Statement, rebuild


def steps_and_subscripts(statement: Statement) -> tuple[Expression, ...]:
    """The iterators of the blocks, and the subscripts of the left-hand side."""
    return (*(IteratorReference(iterator.name) for iterator in statement.sequence), *statement.subscripts)


def element_names(statement: Statement) -> tuple[str, ...]:
    """Names for the iterators of instances that are elements: those of the blocks, and one for every subscript."""
    steps = tuple(iterator.name for iterator in statement.sequence)
    prefix = "d"
    while any(name.startswith(prefix) for name in steps):
        prefix += "_"
    return (*steps, *(f"{prefix}{dimension}" for dimension in range(len(statement.subscripts))))


def at_elements(statement: Statement) -> Statement:
    """The statement with one iterator for every subscript; what it reads at these subscripts, it reads there, too.

    Its ranges are left out: the instances are ``element_instances``.
    """
    names = element_names(statement)[len(statement.blocks) :]
    subscripts: tuple[Expression, ...] = tuple(map(IteratorReference, names))

    def moved(expression: Expression) -> Expression:
        if isinstance(expression, Read) and expression.subscripts == statement.subscripts:
            return replace(expression, subscripts=subscripts)
        return rebuild(expression, moved)

    steps = statement.sequence
    return replace(statement, iterators=steps, conditions=(), subscripts=subscripts, value=moved(statement.value))


def element_instances(statement: Statement, write: isl.Map) -> isl.Set:
    """``{ statement[steps, element] }``: all elements that ``write`` has, each of them once in every step.

    ``write``: ``{ instance -> tensor[steps, element] }``.
    """
    elements = write.range().coalesce().set_tuple_name(statement.name)
    for dimension, name in enumerate(element_names(statement)):
        elements = elements.set_dim_name(isl.dim_type.set, dimension, isl_name(name))
    return elements
