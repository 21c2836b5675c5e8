"""Calls of other definitions: arguments and results checked by name, then by type."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.counted import counted
from tc.base.errors import Span, nearest
from tc.base.frozen import frozen
from tc.grammar import syntax
from tc.language.algebra.rewriting import fresh_name
from tc.language.check.check import ExpressionChecker
from tc.language.check.declarations import Declarations
from tc.language.check.inference import Types
from tc.language.check.scope import Scope, View
from tc.language.check.uses import walk_syntax
from tc.language.check.values import Use, Version, Write
from tc.language.draft.draft import CallDraft
from tc.language.draft.typed import Strength, convert
from tc.language.program.program import Expression, IteratorReference, Program, Read, Role, Scalar, TextOrigin, walk
from tc.language.program.report import Report
from tc.language.prove.written import read_since_written


@frozen
class ResolvedCall:
    """A call that fits its callee by number and kind.

    ``tensors``: for each of the callee's tensor parameters the caller's name and its place.  ``results``: the
    caller's names and their places, in the callee's order.
    """

    callee: Program
    tensors: Mapping[str, tuple[str, Span]]
    scalars: Mapping[str, syntax.Expression]
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
            f"`{name}` takes {counted(len(callee.arguments), 'argument')} ({', '.join(callee.arguments)}), "
            f"{len(call.arguments)} given",
            call.span,
        )
    if len(call.results) != len(callee.results):
        report.error(
            f"`{name}` has {counted(len(callee.results), 'result')} ({', '.join(callee.results)}), "
            f"{len(call.results)} taken",
            call.span,
        )
    results: dict[str, Span] = {}
    for result in call.results:
        if result.name in results:
            report.error(f"the result `{result.name}` is listed twice", result.span)
        results[result.name] = result.span
    tensors: dict[str, tuple[str, Span]] = {}
    scalars: dict[str, syntax.Expression] = {}
    kinds = {scalar.name for scalar in callee.scalars}
    for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
        if parameter in kinds:
            scalars[parameter] = argument
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


def use_of_call(call: ResolvedCall) -> Use:
    """The use of names of a call: a result that the callee updates is read too."""
    reads = dict(call.tensors.values())
    writes: list[tuple[str, int | None, Write, Span]] = []
    for result, (name, span) in zip(call.callee.results, call.results.items(), strict=True):
        tensor = call.callee.tensor(result)
        if tensor.role is Role.IN_OUT:
            reads.setdefault(name, span)
        writes.append((name, len(tensor.shape), Write.UPDATE if tensor.role is Role.IN_OUT else Write.FRESH, span))
    mentions = {
        part.tensor: part.span
        for argument in call.scalars.values()
        for part in walk_syntax(argument)
        if isinstance(part, syntax.Extent)
    }
    reread = read_since_written(call.callee.statements)
    rereads = frozenset(
        name for result, name in zip(call.callee.results, call.results, strict=True) if result in reread
    )
    return Use(reads, mentions, tuple(writes), rereads)


def use_of_broken_call(call: syntax.CallStatement) -> Use:
    """The use of names of a call in error: it writes values of which nothing is known."""
    return Use({}, {}, tuple((result.name, None, Write.FRESH, result.span) for result in call.results))


@frozen
class Caller:
    """What names mean where a call stands, and where its errors go.

    ``views``: what the names of tensors mean for the arguments; ``written``: which values the results are, and
    ``types`` of which types.  ``taken``: names that are in use.
    """

    views: Mapping[str, View]
    written: Mapping[str, Version]
    types: Types
    scope: Scope
    taken: set[str]
    report: Report


def draft_call(number: int, call: ResolvedCall, inlined: Program, caller: Caller) -> CallDraft | None:
    """The call with its tensors named as in the program, None if types or ranks do not fit.

    ``inlined``: the callee with its halves as this caller holds them.  Fresh names of the callee's temporaries are
    taken in the caller.
    """
    report, before = caller.report, caller.report.count
    callee = call.callee
    tensors: dict[str, str] = {}
    for parameter, (name, span) in call.tensors.items():
        view = caller.views.get(name)
        if view is not None:
            tensors[parameter] = view.tensor
            _check_argument(callee, parameter, name, view, span, report)
    for result, (name, span) in zip(callee.results, call.results.items(), strict=True):
        tensors[result] = caller.written[name].tensor
        expected, type = callee.tensor(result), caller.types.get(tensors[result])
        if type is not None and type is not expected.type:
            report.error(f"result `{result}` of `{callee.name}` is {expected.type}, `{name}` is {type}", span)
        if expected.role is Role.IN_OUT and name in {argument for argument, _ in call.tensors.values()}:
            report.error(
                f"`{name}` is an argument of `{callee.name}` and also its result `{result}`, which is updated",
                span,
                "copy it to another name first",
            )
    scalars = {scalar.name: _scalar(call, scalar, caller) for scalar in callee.scalars}
    if report.count > before or len(tensors) < len(call.tensors) + len(call.results):
        return None
    for tensor in inlined.tensors:
        if tensor.role is Role.TEMPORARY:
            tensors[tensor.name] = fresh_name(tensor.name, caller.taken)
            caller.taken.add(tensors[tensor.name])
    return CallDraft(number, inlined, tensors, scalars, call.span, TextOrigin(call.span))


def _check_argument(callee: Program, parameter: str, name: str, view: View, span: Span, report: Report) -> None:
    expected = callee.tensor(parameter)
    if view.rank != len(expected.shape):
        report.error(
            f"argument `{parameter}` of `{callee.name}` has rank {len(expected.shape)}, `{name}` has rank {view.rank}",
            span,
        )
    if view.type is not None and view.type is not expected.type:
        report.error(
            f"argument `{parameter}` of `{callee.name}` is {expected.type}, `{name}` is {view.type}",
            span,
            f"convert it to a tensor of its own first, with `{expected.type}(...)`",
        )


def _scalar(call: ResolvedCall, parameter: Scalar, caller: Caller) -> Expression:
    """A scalar argument: an expression of sizes, scalars and literals in the type of the parameter."""
    argument = call.scalars[parameter.name]
    what = f"argument `{parameter.name}` of `{call.callee.name}`"
    report, before = caller.report, caller.report.count
    checker = ExpressionChecker(caller.scope, caller.views, {}, report)
    result = checker.value(argument)
    if any(isinstance(e, IteratorReference | Read) for e in walk(result.expression)):
        report.error(f"{what} is a scalar: it may use sizes, scalars and numbers only", argument.span)
    elif result.strength is Strength.STRONG and result.type is not parameter.type:
        hint = f"cast it: `{parameter.type}(...)`"
        report.error(f"{what} needs {parameter.type}, this is {result.type}", argument.span, hint)
    elif result.type.is_floating and not parameter.type.is_floating:
        report.error(f"{what} needs {parameter.type}, this is a floating-point number", argument.span)
    return convert(result, parameter.type, report) if report.count == before else result.expression
