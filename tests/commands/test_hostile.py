"""Caches with sound hashes and hostile content: it neither reaches the terminal nor leaves the folder of an export."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tc.cache.content.store import Store
from tc.cache.format.records import Text, Variant
from tc.commands.cache import main
from tc.commands.contents.terminal import printable, shortened
from tc.export.c_text import comment, identifier, integer, string
from tests.commands.caches import add_variant, contents, measurement, summary
from tests.turns import every, one_in

NAMES = (
    "../../x",
    "/etc/passwd",
    "\x1b[31mred\x1b]0;title\x07\r\n\x9b",
    "'; DROP TABLE kernels; --",
    "\\\n#include </etc/passwd>\n*/ ??/\nint evil;",
    '"); system("id',
    "\u202eover\u2066\u200b",
    "\ud800",
    "",
    "a" * 100_000,
    "main",
)


def damaged(cache: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Variant:
    """A kernel like that of ``mm``, whose description is changed; it is measured too."""
    mm = summary(cache, "mm")
    (variant,) = mm.variants
    description = json.loads(variant.executable)
    change(description)
    changed = replace(variant, executable=json.dumps(description), source=f"{variant.source}// {name[:100]}\n")
    made = add_variant(cache, replace(mm.ingredients, strides=json.dumps(name)), changed)
    Store.open(cache).add_measurement(measurement(made, 1.0))
    return made


def rename(name: str) -> Callable[[dict[str, Any]], object]:
    def change(description: dict[str, Any]) -> None:
        text = json.dumps(description)
        description.clear()
        description.update(json.loads(text.replace('"A"', json.dumps(name))))
        description["convention"]["interface"]["name"] = name

    return change


def harmless(capsys: pytest.CaptureFixture[str]) -> None:
    """What was printed moves no cursor, changes no colour, and fills no screen."""
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert all(c.isprintable() or c == "\n" for c in text)
    assert max(map(len, text.splitlines()), default=0) < 5000


@one_in(2)
@pytest.mark.parametrize("name", every(2, NAMES), ids=range(len(NAMES)))
def test_hostile_names_stay_text(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path, name: str) -> None:
    made = damaged(cache, "", rename(name))
    folder = tmp_path / "inside" / "kernels"
    before = sorted(tmp_path.rglob("*"))
    assert main(["show", str(cache), made.kernel]) == 0
    assert main(["export", str(cache), "--sources", str(folder)]) == 0
    harmless(capsys)
    after = set(tmp_path.rglob("*")) - set(before) - {folder.parent, folder}
    assert all(path.parent == folder and path.is_file() for path in after)
    for command in (["make", "libkernels.a"], ["cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "kernels.c"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


@one_in(2)
@pytest.mark.parametrize("text", [name for name in NAMES if name != "\ud800"])
def test_hostile_ingredients_and_texts_stay_text(
    capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path, text: str
) -> None:
    mm = summary(cache, "mm")
    (variant,) = mm.variants
    store = Store.open(cache)
    changed = ("program", "shapes", "dtypes", "strides", "scalars", "symbolic", "architecture", "compiler")
    fields = dict.fromkeys(changed, text)
    ingredients = replace(mm.ingredients, **fields)
    hostile = replace(variant, options=text, resources=text, origin=text, proof=text, numerics=text, features=text)
    made = add_variant(cache, ingredients, replace(hostile, source=text))
    store.add_measurement(replace(measurement(made, 1e-300, text), policy=text, at=text, run=text))
    for number, name in enumerate(("{}", "[" * 100_000, json.dumps({"definitions": [{"canonical": text}]}), text)):
        store.add_text(Text(f"{number:064x}", name))
    for arguments in (
        ["list", str(cache)],
        ["list", str(cache), "--program", text],
        ["show", str(cache), made.kernel],
        ["show", str(cache), made.kernel, "--source"],
        ["verify", str(cache)],
        ["diff", str(cache), str(cache)],
        ["merge", str(tmp_path / "all.db"), str(cache)],
    ):
        assert main(arguments) == 0
        if "--source" in arguments:
            assert all(c.isprintable() or c in "\n\t" for c in capsys.readouterr().out)
        harmless(capsys)
    assert main(["export", str(cache), "--sources", str(tmp_path / "kernels")]) == 2
    harmless(capsys)
    with contents(cache) as found:
        assert len(list(found.kernels())) == 3


def huge(*path: object) -> Callable[[dict[str, Any]], object]:
    def change(description: dict[str, Any]) -> None:
        place: Any = description["convention"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = 10**400

    return change


@pytest.mark.parametrize(
    "change",
    [
        huge("operands", 0, "layout", "shape", 0),
        huge("operands", 0, "layout", "strides", 0),
        huge("memory", "shared"),
        huge("memory", "scratch"),
        lambda description: description["convention"].update(operands=[], temporaries=[1 << 70]),
        lambda description: description["convention"]["operands"][2].update(name="nobody"),
        lambda description: description["convention"]["operands"][0]["layout"].update(shape=[1]),
        lambda description: description["convention"]["signature"].update(symbolic=[{"most": 3, "places": []}]),
        lambda description: description["convention"]["signature"].update(symbolic=[{"most": 3, "arguments": ["A"]}]),
        lambda description: description["convention"]["operands"][0]["layout"].update(
            extents=[{"constant": 1, "factors": [1]}]
        ),
        lambda description: description.update(target="cpu:z80"),
        lambda description: description.clear(),
    ],
)
def test_descriptions_that_tc_did_not_make_are_damage(
    capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    damaged(cache, "", change)
    assert main(["export", str(cache), "--sources", str(tmp_path / "kernels")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"tc-cache: {cache} is damaged: ")
    assert "it holds what tc did not make (" in printed.err
    assert printed.err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["kernels.db"]


def test_names_of_grids_are_names(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    grid = {"name": "x y\n#error", "grid": [1, 1, 1], "block": [1, 1, 1], "shared_bytes": 0, "arguments": []}

    def change(description: dict[str, Any]) -> None:
        description["target"] = "opencl"
        description["options"] = {}
        description["convention"]["grids"] = [grid]

    mm = summary(cache, "mm")
    variant = replace(mm.variants[0], options="{}")
    description = json.loads(variant.executable)
    change(description)
    ingredients = replace(mm.ingredients, target="opencl", architecture="any")
    made = add_variant(cache, ingredients, replace(variant, executable=json.dumps(description)))
    Store.open(cache).add_measurement(measurement(made, 1.0))
    assert main(["export", str(cache), "--sources", str(tmp_path / "kernels"), "--target", "opencl"]) == 2
    assert "it holds what tc did not make ('x y\\n#error' is no name)" in capsys.readouterr().err


def test_pieces_of_c() -> None:
    assert comment("a\nb\\") == "// a?b?"
    assert comment("??/") == "// ?"
    assert string('a"\\?\n\u00e9\ud800') == '"a\\042\\134\\077\\012\\303\\251\\077"'
    assert integer(-5) == "-5"
    assert integer(1 << 40) == "INT64_C(1099511627776)"
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        integer(1 << 63)
    with pytest.raises(ValueError, match=r"'1x' is no name"):
        identifier("1x")
    assert identifier("tc_kernel_0") == "tc_kernel_0"


def test_what_a_terminal_may_show() -> None:
    assert printable("a\x1b[0m\x9b\u202e\ud800\n", kept="\n") == "a\\x1b[0m\\x9b\\u202e\\ud800\n"
    assert shortened("a" * 12, 10) == "aaaaaaa..."
    assert shortened("\x1b" * 5, 10) == "\\x1b\\x1..."
    assert shortened("abc", 3) == "abc"
