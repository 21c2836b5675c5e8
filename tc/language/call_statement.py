"""Calls of other definitions: arguments and results checked by name, then by type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc.errors import Span, nearest
from tc.grammar import syntax
from tc.language.calls import fresh_name
from tc.language.check import ExpressionChecker
from tc.language.declarations import Declarations
from tc.language.draft import CallDraft
from tc.language.inference import Types
from tc.language.program import Expression, IteratorReference, Program, Role, TextOrigin, walk
from tc.language.report import Report
from tc.language.scope import View
from tc.language.typed import Strength, convert
from tc.language.uses import walk_syntax
from tc.language.values import Use, Values, Write
from tc.types import ScalarType


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A call that fits its callee by number and kind.

    ``tensors``: for each of the callee's tensor parameters the caller's name and its place.  ``results``: the
    caller's names and their places, in the callee's order.
    """

    callee: Program
    tensors: Mapping[str, tuple[str, Span]]
    scalars: Mapping[str, Expression]
    results: Mapping[str, Span]
    span: Span


def resolve_call(
    call: syntax.CallStatement, callees: Mapping[str, Program | None], declarations: Declarations, report: Report
) -> ResolvedCall | None:
    """Matches arguments and results; None if they do not fit or the callee is in error."""
    name = call.callee.name
    if name not in callees:
        guess = nearest(name, declarations.scope.definitions)
        hint = "define it in the same text" if guess is None else f"did you mean `{guess}`?"
        report.error(f"unknown definition `{name}`", call.callee.span, hint)
        return None
    callee = callees[name]
    if callee is None:
        return None
    before = report.count
    if len(call.arguments) != len(callee.arguments):
        report.error(
            f"`{name}` takes {len(callee.arguments)} arguments ({', '.join(callee.arguments)}), "
            f"{len(call.arguments)} given",
            call.span,
        )
    if len(call.results) != len(callee.results):
        report.error(
            f"`{name}` has {len(callee.results)} results ({', '.join(callee.results)}), {len(call.results)} taken",
            call.span,
        )
    results: dict[str, Span] = {}
    for result in call.results:
        if result.name in results:
            report.error(f"the result `{result.name}` is listed twice", result.span)
        results[result.name] = result.span
    tensors: dict[str, tuple[str, Span]] = {}
    scalars: dict[str, Expression] = {}
    types = {scalar.name: scalar.type for scalar in callee.scalars}
    for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
        if parameter in types:
            scalars[parameter] = _scalar(name, parameter, types[parameter], argument, declarations, report)
        elif isinstance(argument, syntax.Name) and argument.name in declarations.scope.tensors:
            tensors[parameter] = (argument.name, argument.span)
        else:
            report.error(
                f"argument `{parameter}` of `{name}` is a tensor and needs the name of one",
                argument.span,
                "write the expression to a tensor first",
            )
    if report.count > before:
        return None
    return ResolvedCall(callee, tensors, scalars, results, call.span)


def _scalar(
    callee: str,
    parameter: str,
    type: ScalarType,
    argument: syntax.Expression,
    declarations: Declarations,
    report: Report,
) -> Expression:
    """A scalar argument: an expression of sizes, scalars and literals in the type of the parameter."""
    reads = [
        part
        for part in walk_syntax(argument)
        if isinstance(part, syntax.Name | syntax.Apply) and part.name in declarations.scope.tensors
    ]
    views = {
        name: View(name, tensor.type, len(tensor.shape), tensor.shape) for name, tensor in declarations.inputs.items()
    }
    checker = ExpressionChecker(declarations.scope, views, {}, report)
    result = checker.value(argument)
    if reads or any(isinstance(e, IteratorReference) for e in walk(result.expression)):
        report.error(
            f"argument `{parameter}` of `{callee}` is a scalar: it may use sizes, scalars and numbers only",
            argument.span,
        )
        return result.expression
    if result.strength is Strength.STRONG and result.type is not type:
        report.error(
            f"argument `{parameter}` of `{callee}` needs {type}, this is {result.type}",
            argument.span,
            f"cast it: `{type}(...)`",
        )
    elif result.type.is_floating and not type.is_floating:
        report.error(
            f"argument `{parameter}` of `{callee}` needs {type}, this is a floating-point number", argument.span
        )
    return convert(result, type, report)


def use_of_call(call: ResolvedCall) -> Use:
    """The use of names of a call: a result that the callee updates is read too."""
    reads = dict(call.tensors.values())
    writes: list[tuple[str, int | None, Write, Span]] = []
    for result, (name, span) in zip(call.callee.results, call.results.items(), strict=True):
        tensor = call.callee.tensor(result)
        if tensor.role is Role.IN_OUT:
            reads.setdefault(name, span)
        writes.append((name, len(tensor.shape), Write.UPDATE if tensor.role is Role.IN_OUT else Write.FRESH, span))
    return Use(reads, {}, tuple(writes))


def use_of_broken_call(call: syntax.CallStatement) -> Use:
    """The use of names of a call in error: it writes values of which nothing is known."""
    return Use({}, {}, tuple((result.name, None, Write.FRESH, result.span) for result in call.results))


def draft_call(
    number: int,
    call: ResolvedCall,
    values: Values,
    declarations: Declarations,
    types: Types,
    taken: set[str],
    report: Report,
) -> CallDraft | None:
    """The call with its tensors named as in the program; fresh names of temporaries are added to ``taken``."""
    callee = call.callee
    before = report.count
    tensors: dict[str, str] = {}
    for parameter, (name, span) in call.tensors.items():
        given = declarations.inputs.get(name)
        version = None if given is not None else values.read[number][name]
        tensors[parameter] = name if version is None else version.tensor
        type = given.type if given is not None else types.get(tensors[parameter])
        rank = len(given.shape) if given is not None else None if version is None else version.rank
        expected = callee.tensor(parameter)
        if rank is not None and rank != len(expected.shape):
            report.error(
                f"argument `{parameter}` of `{callee.name}` has {len(expected.shape)} dimensions, `{name}` has {rank}",
                span,
            )
        if type is not None and type is not expected.type:
            report.error(
                f"argument `{parameter}` of `{callee.name}` is {expected.type}, `{name}` is {type}",
                span,
                f"convert it to a tensor of its own first, with `{expected.type}(...)`",
            )
    for result, (name, span) in zip(callee.results, call.results.items(), strict=True):
        tensors[result] = values.written[number][name].tensor
        expected = callee.tensor(result)
        type = types.get(tensors[result])
        if type is not None and type is not expected.type:
            report.error(f"result `{result}` of `{callee.name}` is {expected.type}, `{name}` is {type}", span)
        if expected.role is Role.IN_OUT and name in {argument for argument, _ in call.tensors.values()}:
            report.error(
                f"`{name}` is an argument of `{callee.name}` and at the same time its result `{result}`, "
                "which is updated",
                span,
                "copy it to another name first",
            )
    if report.count > before:
        return None
    for tensor in callee.tensors:
        if tensor.role is Role.TEMPORARY:
            tensors[tensor.name] = fresh_name(tensor.name, taken)
            taken.add(tensors[tensor.name])
    return CallDraft(number, callee, tensors, call.scalars, call.span, TextOrigin(call.span))
