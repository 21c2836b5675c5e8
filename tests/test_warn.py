"""Warnings stand at the line of the program that calls this package, by whichever way it comes in."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

import tc
from tc.artifact.definition import Definition, Parsed, definitions_from_json, definitions_to_json
from tc.base.environment import environment
from tc.base.warn import warn
from tc.cache.content.configured import Configuration, Mode
from tc.cache.content.store import Store
from tc.commands.tune import main
from tc.grammar.parser import parse
from tc.language.lower.lower import lower_text
from tc.language.program.program import Program
from tc.store.cached import KernelCache

LIBRARY = "def twice(float(M,N) x) -> (y) { y(m,n) = 2 * x(m,n) <=> scale(x) }"
X = np.ones((3, 5), np.float32)
LARGE = (1 << 30, 1 << 30)

_Way: TypeAlias = Callable[[tc.Comprehension], object]


class Remembering:
    """A cache that knows the definitions of a text, whose program was not parsed here, and no kernel."""

    def definitions(self, text: str, parse_again: Callable[[], Mapping[str, Program]]) -> Mapping[str, Definition]:
        parsed = {name: Parsed(program, text) for name, program in lower_text(parse(text), text).items()}
        return definitions_from_json(definitions_to_json(parsed), text, parse_again)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(tc.TooLargeError):
        call()


def with_torch(f: tc.Comprehension) -> object:
    torch = pytest.importorskip("torch")
    return f(torch.ones(3, 5))


WAYS: dict[str, _Way] = {
    "call": lambda f: f(X),
    "call by name": lambda f: f(x=X),
    "compile": lambda f: f.compile((3, 5)),
    "explain": lambda f: f.explain(X),
    "candidates": lambda f: f.candidates((3, 5)),
    "output shapes": lambda f: f.output_shapes((3, 5)),
    "reference": lambda f: f.reference(X),
    "program": lambda f: f.program,
    "tune": lambda f: refused(lambda: f.tune(LARGE, budget="1 trial", progress=False)),
    "torch": with_torch,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_found_when_a_text_is_parsed_again(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.api.definitions.process_cache", Remembering)
    monkeypatch.setattr("tc.api.kernels.process_cache", lambda: None)
    f = tc.define(LIBRARY)["twice"]
    with pytest.warns(tc.LibraryCallWarning, match="the library call `scale` is ignored") as caught:
        WAYS[way](f)
    lines, first = inspect.getsourcelines(WAYS[way])
    assert [warning.filename for warning in caught] == [__file__]
    assert caught[0].lineno in range(first, first + len(lines))


def a_cache(path: Path, mode: Mode, *, own: bool = False) -> KernelCache:
    return KernelCache(Configuration(str(path), mode, None, own), environment())


def test_what_a_call_finds_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(tmp_path / "k.db")
    known = a_cache(tmp_path / "k.db", Mode.WARN)
    monkeypatch.setattr("tc.api.kernels.process_cache", lambda: known)
    f = tc.define("def one(float(N) x) -> (y) { y(i) = x(i) + 1 }")
    with pytest.warns(tc.CacheWarning, match="has no kernel for one") as caught:
        f(X[0])
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, here() - 1)]


def test_what_a_definition_finds_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.db").write_bytes(b"this is no cache" * 100)
    own = a_cache(tmp_path / "k.db", Mode.STORE, own=True)
    monkeypatch.setattr("tc.api.definitions.process_cache", lambda: own)
    with pytest.warns(tc.CacheWarning, match="the cache of compiled kernels is not used") as caught:
        f = tc.define("def one(float(N) x) -> (y) { y(i) = x(i) + 1 }")
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, here() - 1)]
    monkeypatch.setattr("tc.api.kernels.process_cache", lambda: own)
    with pytest.warns(tc.CacheWarning, match="a kernel is not kept") as caught:
        f(X[0])
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, here() - 1)]


def here() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def test_a_program_that_is_all_of_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    # As ``python -m tc.commands.tune`` is: then it is the outermost line.
    monkeypatch.setattr("tc.base.warn._BETWEEN", ("tc", __name__.partition(".")[0], "_pytest", "pluggy", "pytest"))
    with pytest.warns(UserWarning, match="all ours") as caught:
        warn("all ours", UserWarning)
    assert caught[0].filename != __file__


def test_commands_say_warnings_as_they_say_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernels.tc"
    file.write_text(LIBRARY)
    assert main([str(file), "--size", "M=3"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("tc-tune: warning: 1:58: the library call `scale` is ignored")
    assert said[-1].startswith("tc-tune: ")
    assert "needs the sizes" in said[-1]
