"""Makes a failing recipe smaller for as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import assert_never

import tc
from tc.grammar import syntax
from tc.grammar.parser import parse
from tc.grammar.printer import print_text
from tc.targets.options import Options
from tests.fuzz.recipe import Content, Layout, Recipe, TensorArgument


def shrink(recipe: Recipe, fails: Callable[[Recipe], bool], attempts: int = 400) -> Recipe:
    """The smallest recipe found that still fails; ``fails`` is asked at most so many times."""
    left = attempts
    progress = True
    while progress and left:
        progress = False
        for candidate in _smaller(recipe):
            if not left:
                break
            left -= 1
            if fails(candidate):
                recipe, progress = candidate, True
                break
    return recipe


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    """Simpler recipes, the boldest first."""
    yield from _texts(recipe)
    yield from _calls(recipe)
    yield from _arguments(recipe)


def _calls(recipe: Recipe) -> Iterator[Recipe]:
    """Default options and target, nothing through ``out=``, smaller sizes."""
    yield from (replace(recipe, options=o) for o in _options(recipe.options) if o != recipe.options)
    if recipe.target != "cpu":
        options = recipe.options if isinstance(recipe.options, tc.CpuOptions) else tc.CpuOptions()
        yield replace(recipe, target="cpu", options=options)
    for opened in recipe.opened:
        yield replace(recipe, opened=tuple(other for other in recipe.opened if other != opened))
    if recipe.shared:
        yield replace(recipe, shared=())
    for position in range(len(recipe.outputs)):
        yield replace(recipe, outputs=recipe.outputs[:position] + recipe.outputs[position + 1 :])
    for position, (name, size) in enumerate(recipe.sizes):
        for smaller in sorted({1, 2, size // 2, size - 1}):
            if 0 < smaller < size:
                sizes = (*recipe.sizes[:position], (name, smaller), *recipe.sizes[position + 1 :])
                yield replace(recipe, sizes=sizes)


def _options(options: Options) -> Iterator[Options]:
    """The default options, options of which one has its default."""
    default, schedule = type(options)(), tc.ScheduleOptions()
    yield default
    for field in fields(schedule):
        simpler = replace(options.schedule, **{field.name: getattr(schedule, field.name)})
        yield replace(options, schedule=simpler)
    for field in fields(default):
        changed = {field.name: getattr(default, field.name)}
        if field.name == "register_tile":
            changed["vector_axis"] = None  # which is one of the register tile's
        yield replace(options, **changed)


def _arguments(recipe: Recipe) -> Iterator[Recipe]:
    """Plain arrays."""
    for position, (name, argument) in enumerate(recipe.arguments):
        if not isinstance(argument, TensorArgument):
            continue
        for plain in (
            replace(argument, layout=Layout.CONTIGUOUS),
            replace(argument, torch=False),
            replace(argument, content=Content.ORDINARY),
        ):
            if plain != argument:
                arguments = (*recipe.arguments[:position], (name, plain), *recipe.arguments[position + 1 :])
                yield replace(recipe, arguments=arguments)


# --- texts ---------------------------------------------------------------------------------------------------


def _texts(recipe: Recipe) -> Iterator[Recipe]:
    try:
        text = parse(recipe.text)
    except tc.ParseError:
        return
    for position, definition in enumerate(text.definitions):
        before, after = text.definitions[:position], text.definitions[position + 1 :]
        if definition.name != recipe.name:
            yield replace(recipe, text=print_text(syntax.Text((*before, *after))))
        for smaller in _definitions(definition):
            changed = replace(recipe, text=print_text(syntax.Text((*before, smaller, *after))))
            if definition.name == recipe.name:
                kept = {parameter.name for parameter in smaller.parameters}
                arguments = tuple(pair for pair in recipe.arguments if pair[0] in kept)
                changed = replace(changed, arguments=arguments)
            yield changed


def _definitions(definition: syntax.Definition) -> Iterator[syntax.Definition]:
    """The definition without a statement, a result, a parameter, or with a smaller statement."""
    statements, results, parameters = definition.statements, definition.results, definition.parameters
    for position in reversed(range(len(statements))):
        rest = statements[:position] + statements[position + 1 :]
        written = {name for statement in rest for name in _targets(statement)}
        yield replace(definition, statements=rest, results=tuple(r for r in results if r.name in written))
    for position in range(len(results)):
        yield replace(definition, results=results[:position] + results[position + 1 :])
    for position in range(len(parameters)):
        yield replace(definition, parameters=parameters[:position] + parameters[position + 1 :])
    for position, statement in enumerate(statements):
        for smaller in _statements(statement):
            yield replace(definition, statements=(*statements[:position], smaller, *statements[position + 1 :]))


def _targets(statement: syntax.Statement) -> Iterator[str]:
    match statement:
        case syntax.Assign(target):
            yield target
        case syntax.CallStatement(results):
            yield from (result.name for result in results)
        case syntax.ArgReduction(values, indices):
            yield from (values.name, indices.name)
        case syntax.Block():
            yield from (name for own in statement.statements for name in _targets(own))
        case _:
            assert_never(statement)


def _statements(statement: syntax.Statement) -> Iterator[syntax.Statement]:
    """The statement with fewer clauses or a smaller value; a block with one statement less, or a smaller one."""
    if isinstance(statement, syntax.Block):
        own = statement.statements
        for position, part in enumerate(own):
            if len(own) > 1:
                yield replace(statement, statements=own[:position] + own[position + 1 :])
            for smaller in _statements(part):
                yield replace(statement, statements=(*own[:position], smaller, *own[position + 1 :]))
        return
    if not isinstance(statement, syntax.Assign):
        return
    for position in range(len(statement.where)):
        yield replace(statement, where=statement.where[:position] + statement.where[position + 1 :])
    for value in _expressions(statement.value):
        yield replace(statement, value=value)


def _expressions(expression: syntax.Expression) -> Iterator[syntax.Expression]:
    """The subexpressions in place of the expression, then smaller subexpressions in their places."""
    children = _children(expression)
    yield from children
    for position, child in enumerate(children):
        for smaller in _expressions(child):
            yield _rebuilt(expression, (*children[:position], smaller, *children[position + 1 :]))


def _children(expression: syntax.Expression) -> tuple[syntax.Expression, ...]:
    match expression:
        case syntax.Number() | syntax.Name() | syntax.Extent():
            return ()
        case syntax.Apply(_, arguments):
            return arguments
        case syntax.Unary(_, operand):
            return (operand,)
        case syntax.Binary(_, left, right):
            return (left, right)
        case syntax.Conditional(condition, then, otherwise):
            return (condition, then, otherwise)
        case _:
            assert_never(expression)


def _rebuilt(expression: syntax.Expression, children: tuple[syntax.Expression, ...]) -> syntax.Expression:
    match expression:
        case syntax.Number() | syntax.Name() | syntax.Extent():
            return expression
        case syntax.Apply():
            return replace(expression, arguments=children)
        case syntax.Unary():
            return replace(expression, operand=children[0])
        case syntax.Binary():
            return replace(expression, left=children[0], right=children[1])
        case syntax.Conditional():
            return replace(expression, condition=children[0], then=children[1], otherwise=children[2])
        case _:
            assert_never(expression)
