"""The documents say what happens: every block of code in README and in ``docs`` is run or checked."""

from __future__ import annotations

import dataclasses
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tc
from benchmarks.command_line import command_line as benchmarks_parser
from tc.base.environment import Environment
from tc.commands.cache import _parser as cache_parser
from tc.commands.export_model import _parser as export_parser
from tc.commands.jobs import read_job_file
from tc.commands.tune import _parser as tune_parser
from tc.language.program.functions import FUNCTIONS
from tests.documents import DOCS, ERROR, README, ROOT, CodeBlock, blocks, pages

PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
INCLUDED = re.compile(r'--8<-- "(.*)"\n')
MAKE_TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PARSERS = {
    "tc-tune": tune_parser,
    "tc-cache": cache_parser,
    "tc-export": export_parser,
    "python -m benchmarks": benchmarks_parser,
}
# What users bring, or what is there anyway.
OTHERS = ("python serve.py", "python examples/", "python -m pytest", "python -m tests.", "ruff", "mypy", "git")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def programs(page: Path, *, slow: bool) -> Iterator[CodeBlock]:
    """The programs of a page, with those that take long or without."""
    for block in blocks(page):
        absent = block.mark in ("cuda", "jax") and find_spec(block.mark) is None
        left_out = absent or INCLUDED.match(block.text) or (block.mark == "slow" and not slow)
        if block.language == "python" and not left_out:
            yield block


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, slow: bool) -> dict[str, object]:
    """Runs the programs of a page one after the other; the names that they leave."""
    monkeypatch.chdir(folder)  # some of them write files
    names: dict[str, object] = {}
    for block in programs(page, slow=slow):
        with redirect_stdout(io.StringIO()):
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
    return names


def with_slow_ones() -> list[Path]:
    return [page for page in pages() if any(block.mark == "slow" for block in blocks(page))]


def test_programs_of_the_readme_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(README, tmp_path, monkeypatch, slow=False)
    np.testing.assert_array_equal(names["C"], np.full((64, 48), 32.0))
    np.testing.assert_array_equal(names["y"], [0.5, 2.5, 4.5, 6.5])


@pytest.mark.parametrize("page", pages()[1:], ids=lambda page: str(page.relative_to(ROOT)))
def test_programs_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, tmp_path, monkeypatch, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", with_slow_ones(), ids=lambda page: str(page.relative_to(ROOT)))
def test_long_programs_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, tmp_path, monkeypatch, slow=True)


@PAGES
def test_blocks_are_of_a_kind_that_is_checked(page: Path) -> None:
    for block in blocks(page):
        assert block.language in {"python", "tc", "text", "console", "toml"}, f"{block}: {block.language}"
        assert block.mark in {"", "slow", "cuda", "jax", "diagram"}, f"{block}: {block.mark}"
        if block.language == "text":
            assert block.mark == "diagram" or ERROR.match(block.text), f"{block}: neither a diagram nor an error"
        for file in INCLUDED.findall(block.text):
            assert (ROOT / file).is_file(), f"{block}: {file}"


@PAGES
def test_definitions_are_definitions(page: Path) -> None:
    for block in blocks(page):
        if block.language == "tc":
            assert list(tc.define(block.text)) == re.findall(r"^def (\w+)", block.text, re.MULTILINE), block


@PAGES
def test_errors_are_what_comes(page: Path) -> None:
    for block in blocks(page):
        if ERROR.match(block.text):
            with pytest.raises(tc.TCError) as caught:
                tc.define(block.text.splitlines()[1].strip())
            assert f"{caught.value}\n" == block.text, block


@PAGES
def test_commands_are_accepted(page: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            for line in block.text.splitlines():
                if line.strip():
                    check_command(line, block)


def check_command(line: str, block: CodeBlock) -> None:
    """Parsers take the arguments; targets of make and extras exist."""
    words = [word for word in shlex.split(line, comments=True) if not re.fullmatch(r"TC_[A-Z_]+=\S+", word)]
    words = words[: words.index(">")] if ">" in words else words
    match words:
        case ["make", *targets]:
            targets = [target for target in targets if "=" not in target]
            assert set(targets) <= set(MAKE_TARGETS), f"{block}: {line}"
        case ["pip", "install", *packages]:
            for extra in re.findall(r"\[(.*?)\]", " ".join(packages)):
                assert set(extra.split(",")) <= set(EXTRAS), f"{block}: {line}"
        case ["tc-tune", "report", _]:
            pass
        case _:
            command = " ".join(words)
            for name, parser in PARSERS.items():
                if command == name or command.startswith(f"{name} "):
                    parser().parse_args(words[len(name.split()) :])
                    return
            assert command.startswith(OTHERS), f"{block}: nothing checks {line!r}"


def test_files_of_many_kernels_are_read(tmp_path: Path) -> None:
    (tmp_path / "kernels.tc").write_text(next(b.text for b in blocks(DOCS / "language.md") if b.language == "tc"))
    (tmp_path / "options.json").write_text("{}")
    found = [block for page in pages() for block in blocks(page) if block.language == "toml"]
    assert found
    for block in found:
        (tmp_path / "jobs.toml").write_text(block.text)
        file = read_job_file(tmp_path / "jobs.toml")
        assert [job for request in file.requests for job in request.jobs()] or file.models, block


# --- nothing is left out ---------------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(text_of(README).splitlines()) <= 150


@pytest.mark.parametrize("options", [tc.ScheduleOptions, tc.CpuOptions, tc.GpuOptions])
def test_every_option_is_explained(options: type) -> None:
    headings = " ".join(re.findall(r"^###? (.*)", text_of(DOCS / "options.md"), re.MULTILINE))
    missing = [f.name for f in dataclasses.fields(options) if f.name != "schedule" and f"`{f.name}`" not in headings]
    assert missing == [], "options.md has no heading for them"


def test_every_function_is_listed() -> None:
    text = text_of(DOCS / "language.md")
    assert [name for name in FUNCTIONS if f"`{name}`" not in text] == []


def test_every_public_name_is_in_the_reference() -> None:
    assert sorted(re.findall(r"^::: tc\.(\w+)$", text_of(DOCS / "api.md"), re.MULTILINE)) == sorted(tc.__all__)


def test_every_setting_of_a_search_is_listed() -> None:
    flags = [flag for action in tune_parser()._actions for flag in action.option_strings if flag.startswith("--")]
    missing = {flag for flag in flags if f"`{flag}" not in text_of(DOCS / "tuning.md")}
    assert missing == {"--help", "--version"}


def test_every_variable_is_listed() -> None:
    declared = set(re.findall(r"``(TC_[A-Z_]+)``", Environment.__doc__ or ""))
    assert declared
    assert {name for name in declared if f"`{name}`" not in text_of(DOCS / "calling.md")} == set()


def test_links_between_files_lead_somewhere() -> None:
    for page in pages():
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text_of(page)):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^ +- (?:\w+: )?(\w+\.md)$", text_of(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in DOCS.glob("*.md"))


def test_files_that_documents_name_exist() -> None:
    for page in pages():
        for name in re.findall(r"`((?:tc|tuner|cache|grammar|tests|benchmarks|examples)/[\w/.]*)`", text_of(page)):
            assert (ROOT / name).exists(), f"{page.name}: {name}"
