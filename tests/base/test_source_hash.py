"""The version of the sources changes with what they do, and with nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tc.base.generator import generator_version
from tc.base.source_hash import canonical, source_files, source_hash
from tests.programs import ROOT

FUNCTION = '"""Doubles."""\n\n\ndef double(x: int) -> int:\n    """Twice as much."""\n    return 2 * x  # of x\n'
HEADER = 'int32_t twice(int32_t x);  // of x\n/* and\n   more */\nconst char *name = "a // b";\n'
GRAMMAR = '// The start.\nstart: "a" /\\/\\/+/\n'


@pytest.mark.parametrize(
    ("suffix", "text", "old", "new"),
    [
        (".py", FUNCTION, "Doubles", "Multiplies by two"),
        (".py", FUNCTION, '    """Twice as much."""\n', ""),
        (".py", FUNCTION, "  # of x", ""),
        (".py", FUNCTION, "2 * x", "(2\n            * x)"),
        (".h", HEADER, "// of x", ""),
        (".h", HEADER, "and\n   more", "less"),
        (".h", HEADER, "int32_t twice", "int32_t   twice"),
        (".lark", GRAMMAR, "// The start.\n", ""),
    ],
)
def test_prose_and_layout_are_no_part_of_it(suffix: str, text: str, old: str, new: str) -> None:
    assert old in text
    assert canonical(suffix, text.replace(old, new)) == canonical(suffix, text)


@pytest.mark.parametrize(
    ("suffix", "text", "old", "new"),
    [
        (".py", FUNCTION, "2 * x", "3 * x"),
        (".py", FUNCTION, "2 * x", "2.0 * x"),
        (".py", FUNCTION, "2 * x", "x * 2"),
        (".py", FUNCTION, "2 * x", "'2 * x'"),
        (".py", FUNCTION, "return 2 * x", "return None"),
        (".h", HEADER, "int32_t x", "int64_t x"),
        (".h", HEADER, "a // b", "a // c"),
        (".lark", GRAMMAR, '"a"', '"b"'),
        (".lark", GRAMMAR, "/\\/\\/+/", "/\\/\\/*/"),
    ],
)
def test_all_else_is(suffix: str, text: str, old: str, new: str) -> None:
    assert old in text
    assert canonical(suffix, text.replace(old, new)) != canonical(suffix, text)


def test_rooms_that_make_code_count_and_others_do_not(tmp_path: Path) -> None:
    for folder in ("polyhedral/ir", "codegen/prelude", "commands"):
        shutil.copytree(ROOT / "tc" / folder, tmp_path / folder)
    files = source_files("tc", tmp_path)
    assert {name.split("/")[1] for name, _ in files} == {"polyhedral", "codegen"}
    before = source_hash(files)
    edits = {
        "commands/tune.py": ("\nEXTRA = 1\n", True),
        "polyhedral/ir/loops.py": ("\n# A comment.\n", True),
        "codegen/prelude/abi.h": ("\n// A comment.\n", True),
        "polyhedral/ir/tree.py": ("\nEXTRA = 1\n", False),
        "codegen/prelude/numerics.h": ("\n#define EXTRA 1\n", False),
    }
    for name, (added, same) in edits.items():
        path = tmp_path / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text + added, encoding="utf-8")
        assert (source_hash(source_files("tc", tmp_path)) == before) is same, name
        path.write_text(text, encoding="utf-8")


def others() -> list[str]:
    """The other versions of Python that are installed here; a name may be a shim without that version behind it."""
    names = (f"python3.{minor}" for minor in (11, 12, 13) if sys.version_info.minor != minor)
    found = [path for name in names if (path := shutil.which(name)) is not None]
    return [
        path for path in found if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
    ]


def test_all_versions_of_python_agree() -> None:
    own = ROOT / "tc" / "base" / "source_hash.py"
    files = [("check", ROOT / "tc" / "language" / "check" / "check.py"), ("own", own)]
    program = f"import runpy; from pathlib import *; print(runpy.run_path({str(own)!r})['source_hash']({files!r}))"
    for python in others() or pytest.skip("there is no other version of Python"):
        run = subprocess.run([python, "-B", "-c", program], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == source_hash(files), python


@pytest.mark.slow
def test_what_was_found_is_remembered_until_a_file_changes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tc", tmp_path / "tc", ignore=shutil.ignore_patterns("__pycache__"))

    def version() -> str:
        program = "from tc.base.generator import generator_version; print(generator_version())"
        command = [sys.executable, "-c", program]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    first = version()
    assert first == generator_version()
    (remembered,) = (tmp_path / "tc" / "base" / "__pycache__").glob("sources-*.txt")
    remembered.write_text("0123456789abcdef", encoding="utf-8")
    assert "0123456789abcdef" in version()
    edited = tmp_path / "tc" / "codegen" / "text" / "names.py"
    edited.write_text(edited.read_text(encoding="utf-8") + "\n# A comment.\n", encoding="utf-8")
    assert version() == first
    edited.write_text(edited.read_text(encoding="utf-8") + "\nEXTRA = 1\n", encoding="utf-8")
    assert version() != first
