"""``define``: a text becomes definitions, each of them a comprehension."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from tc.api.comprehension import Comprehension
from tc.api.kernels import process_cache
from tc.artifact.definition import Definition, Parsed
from tc.base.errors import ArgumentError, Diagnostic, GradientError, LibraryCallWarning, OptionsError, nearest, render
from tc.base.warn import warn
from tc.targets.options import Options
from tc.targets.usual_options import Usual, usual_options

if TYPE_CHECKING:
    from tc.grammar.syntax import Text
    from tc.language.program.program import Program
    from tc.tuner.trial.budget import Budget

# How many texts are remembered with what they mean: of a library that defines the same again and again.
_TEXTS: Final = 256

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _of_the_only_one(
    method: Callable[Concatenate[Comprehension, Parameters], Result],
) -> Callable[Concatenate[Definitions, Parameters], Result]:
    """The method of the only definition, with its parameters and its documentation."""

    @functools.wraps(method)
    def forwarded(definitions: Definitions, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        return method(definitions.single(), *arguments, **named)

    return forwarded


class Definitions(Mapping[str, "Comprehension"]):
    """The definitions of one text: ``defs.mm``, ``defs["mm"]``, ``list(defs)``, ``len(defs)``.

    When it holds one definition it can be called, compiled and explained itself.  Definitions that are called like a
    method of this class are reached by item.
    """

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        tune: str | Budget | None = None,
        usual: Usual = (),
        gradients: Mapping[str, str] | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        own, reasons = gradients or {}, refused or {}
        made: dict[str, Comprehension] = {}

        def comprehension(name: str) -> Comprehension:
            if name not in made:
                gradient = comprehension(own[name]) if name in own else reasons.get(name)
                made[name] = Comprehension(definitions[name], definitions, tune, usual, own=gradient)
            return made[name]

        self._comprehensions = {name: comprehension(name) for name in definitions}
        self._only = next(iter(self._comprehensions.values())) if len(definitions) == 1 else None

    def __getitem__(self, name: str) -> Comprehension:
        if name not in self._comprehensions:
            raise KeyError(self._unknown(name))
        return self._comprehensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._comprehensions)

    def __len__(self) -> int:
        return len(self._comprehensions)

    def __getattr__(self, name: str) -> Comprehension:
        found = self.__dict__.get("_comprehensions", {})
        if name in found:
            comprehension: Comprehension = found[name]
            return comprehension
        raise AttributeError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        found = self.__dict__.get("_comprehensions", {})
        guess = nearest(str(name), found)
        hint = f"; did you mean {guess!r}?" if guess else f"; defined: {', '.join(found)}"
        return f"no definition is called {name!r}{hint}"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._comprehensions]

    def __repr__(self) -> str:
        return f"<tc.Definitions {', '.join(self)}>"

    def single(self) -> Comprehension:
        """The only definition; TypeError if there are several."""
        if self._only is None:
            raise TypeError(
                f"the text defines {', '.join(self)}; call one of them, for example defs.{next(iter(self))}"
            )
        return self._only

    __call__ = _of_the_only_one(Comprehension.__call__)
    compile = _of_the_only_one(Comprehension.compile)
    tune = _of_the_only_one(Comprehension.tune)
    output_shapes = _of_the_only_one(Comprehension.output_shapes)
    reference = _of_the_only_one(Comprehension.reference)
    explain = _of_the_only_one(Comprehension.explain)
    gradient = _of_the_only_one(Comprehension.gradient)
    jvp = _of_the_only_one(Comprehension.jvp)
    torch_op = _of_the_only_one(Comprehension.torch_op)
    with_gradient = _of_the_only_one(Comprehension.with_gradient)


def define(
    text: str,
    tune: str | Budget | None = None,
    *,
    options: Options | Sequence[Options] | None = None,
    gradients: Mapping[str, str] | None = None,
) -> Definitions:
    """The definitions of a text in the tensor comprehension language.

    ``tune``: a budget, as in ``"30s"``: the first call for other types, shapes or strides than before searches so long
    for the quickest options, unless the cache has the winner of an earlier search; see ``Comprehension.tune``.
    ``options``: what calls of all definitions use that name none, on the targets that take them: ``tc.CpuOptions``,
    ``tc.GpuOptions``, or a list with one of each.  Calls on other targets raise OptionsError until they name some; a
    winner of ``tune`` of a definition takes their place.
    ``gradients``: by definition, the one of the same text that is its gradient, instead of a derived one: it takes the
    arguments, then an adjoint for each floating result, and returns an adjoint for each floating tensor among the
    arguments.  GradientError for one that does not.
    ParseError if it is not in the grammar; SemanticError or RangeError, with all complaints together, if it means
    nothing.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"tc.define takes the text of definitions, got {type(text).__name__}")
    usual = usual_options(options)
    if usual and tune is not None:
        raise OptionsError(
            "tc.define takes options or tune, not both: one says which options to use, the other to look for better "
            "ones; a search that begins with given options is f.tune(..., start=options)"
        )
    cache = process_cache()
    known = None if cache is None else cache.definitions(text, lambda: parsed(text))
    found = known or {name: Parsed(program, text) for name, program in parsed(text).items()}
    if not gradients:
        return Definitions(found, tune, usual)
    return Definitions(found, tune, usual, gradients, _refused(text, found, gradients))


def _refused(text: str, found: Mapping[str, Definition], gradients: Mapping[str, str]) -> Mapping[str, str]:
    """Why definitions have no gradient that call one with a gradient of its own, which is not in what they inline."""
    from tc.gradient.own import callers, require_gradient

    for name, gradient in gradients.items():
        for own in (name, gradient):
            if own not in found:
                guess = nearest(own, found)
                hint = f"did you mean {guess!r}?" if guess else f"defined: {', '.join(found)}"
                raise GradientError(Diagnostic(f"gradients name `{own}`, which the text does not define; {hint}"))
        require_gradient(found[name].interface, found[gradient].interface)
    parsed, _ = _understood(text)
    return {
        name: f"`{name}` calls `{callee}`, whose own gradient `{gradients[callee]}` is not part of it; give `{name}` "
        "a gradient, too, or call both one after the other"
        for name, callee in callers(parsed.definitions, gradients).items()
        if name not in gradients
    }


def parsed(text: str) -> Mapping[str, Program]:
    """What the definitions of a text mean; errors as of ``define``, and its warnings."""
    found, programs = _understood(text)
    _warn_of_libraries(found, text)
    return programs


@functools.lru_cache(maxsize=_TEXTS)
def _understood(text: str) -> tuple[Text, Mapping[str, Program]]:
    """The text parsed, and what its definitions mean."""
    from tc.grammar.parser import parse
    from tc.language.lower.lower import lower_text

    found = parse(text)
    return found, lower_text(found, text)


def _warn_of_libraries(parsed: Text, text: str) -> None:
    """Library calls behind ``<=>`` are ignored: a warning at the caller's line shows each of them."""
    from tc.grammar.syntax import Assign, within_blocks

    for definition in parsed.definitions:
        for statement in within_blocks(definition.statements):
            library = statement.library if isinstance(statement, Assign) else None
            if library is not None:
                message = (
                    f"the library call `{library.name}` is ignored: the statement before `<=>` is what is computed"
                )
                found = Diagnostic(message, library.span, "remove `<=> ...`, or leave it: it changes nothing")
                warn(render(found, text), LibraryCallWarning)
