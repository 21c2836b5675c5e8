"""From statements to a program: what is needed of them, in the order of the field, as the front end reads its text."""

from __future__ import annotations

from dataclasses import replace

from tc.base.errors import Diagnostic, GradientError, SemanticError
from tc.base.types import ScalarType
from tc.gradient.reads import named_by, needed_for
from tc.gradient.terms import converted
from tc.grammar import syntax
from tc.grammar.printer import print_definition
from tc.language.algebra.rewriting import map_statement
from tc.language.lower.lower import lower_text
from tc.language.program.program import Cast, Expression, Program, Read, Role, Statement, rebuild
from tc.language.text.print_program import program_syntax


def pruned(program: Program) -> Program:
    """The program with the statements that its results depend on, and tensors in the order in which they are written.

    What it writes beside its results is temporary; of the other tensors the arguments are left.  An extent that only a
    call knows has no name without what writes it: that of an adjoint is then not compared with it, but what reads the
    adjoint is proven to stay inside, as always.
    """
    kept = needed_for(program.statements, program.results)
    written = dict.fromkeys(statement.target for statement in kept)
    known = {tensor.name: tensor for tensor in program.tensors}
    arguments = [known[name] for name in program.arguments if name in known]
    others = [replace(known[name], role=Role.OUTPUT if name in program.results else Role.TEMPORARY) for name in written]
    iterators = {iterator.name for statement in kept for iterator in statement.iterators}
    names = (*program.sizes, *known, *iterators, *(scalar.name for scalar in program.scalars))
    prefix = "S"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    tensors = (*arguments, *others)
    present = {tensor.name for tensor in tensors}
    return replace(
        program,
        tensors=tensors,
        statements=tuple(replace(statement, name=f"{prefix}{n}") for n, statement in enumerate(kept)),
        preconditions=tuple(own for own in program.preconditions if named_by((own.condition,)) <= present),
    )


def lowered(program: Program) -> Program:
    """The program as the front end makes it of its text."""
    written = program_syntax(program)
    try:
        (found,) = lower_text(syntax.Text((written,)), f"{print_definition(written)}\n").values()
    except SemanticError as error:
        message = f"the gradient of `{program.name.removesuffix('_gradient')}` is no definition: {error}"
        raise GradientError(Diagnostic(message)) from error
    return found


def with_wide_temporaries(program: Program) -> Program:
    """The program with reductions of halves in temporaries kept in float32, and rounded where they are read."""
    wide = {
        statement.target
        for statement in program.statements
        if statement.reduction is not None and program.tensor(statement.target).type.is_half
    } - set(program.results)
    if not wide:
        return program

    def rounded(expression: Expression) -> Expression:
        found = rebuild(expression, rounded)
        if isinstance(found, Read) and found.tensor in wide:
            return Cast(replace(found, type=ScalarType.FLOAT32), found.type)
        return found

    def widened(statement: Statement) -> Statement:
        found = map_statement(statement, rounded)
        if statement.target not in wide:
            return found
        return replace(found, value=converted(found.value, ScalarType.FLOAT32))

    tensors = (replace(t, type=ScalarType.FLOAT32) if t.name in wide else t for t in program.tensors)
    return replace(program, tensors=tuple(tensors), statements=tuple(map(widened, program.statements)))
