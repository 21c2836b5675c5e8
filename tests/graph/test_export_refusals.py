"""What is not exported, and what happens to folders that are there already."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.model import Model
from tc.graph.settings import Settings

F = ScalarType.FLOAT32


def small_graph(value: float = 2.0) -> Graph:
    builder = tc.graph.Builder("small")
    held = builder.constant(np.full(3, value, np.float32))
    x = builder.input("x", F, (3,))
    return builder.finish(builder.call("def scaled(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) }", x, held))


def small(value: float = 2.0) -> Model:
    return Model.of(small_graph(value))


# --- what cannot be exported -----------------------------------------------------------------------------------------


def test_what_the_host_computes_is_named(tmp_path: Path) -> None:
    builder = tc.graph.Builder("mixed")
    x = builder.input("x", F, (3,))
    builder.origin = "node `n`"
    made = builder.host("Sort", lambda arrays: [np.sort(arrays[0])], [x], [(F, (3,))])
    with pytest.raises(tc.GraphError) as raised:
        Model.of(builder.finish(made)).export(tmp_path / "mixed")
    assert str(raised.value) == (
        "`mixed` cannot be exported: Python computes Sort (node `n`); give outputs that do not need it"
    )
    assert list(tmp_path.iterdir()) == []


def test_buffers_of_opencl_begin_where_they_are_allocated(tmp_path: Path) -> None:
    with pytest.raises(tc.GraphError, match="models are exported for cpu and cuda, not for opencl"):
        Model.of(small_graph(), Settings(target="opencl")).export(tmp_path / "small")


def test_shapes_must_fit(tmp_path: Path) -> None:
    model = tc.graph.Model.of(tc.graph.parse("graph g(float32(N, 3) x) -> (x) {}"))
    for shapes, named, message in (
        ([], {}, r"`x` has the open shape \(N, 3\); give shapes of the inputs"),
        ([(4, 2)], {}, r"input `x` is declared \(N, 3\), got \(4, 2\)"),
        ([(4, 3, 1)], {}, r"input `x` is declared \(N, 3\), got \(4, 3, 1\)"),
        ([(4, 3), (4, 3)], {}, "`g` has 1 inputs, got 2"),
        ([(4, 3)], {"x": (4, 3)}, "the input `x` is given twice"),
        ([], {"X": (4, 3)}, "`g` has no input `X`; did you mean `x`?"),
    ):
        with pytest.raises(tc.GraphError, match=message):
            model.export(tmp_path / "g", *shapes, **named)
    assert list(tmp_path.iterdir()) == []


# --- folders ---------------------------------------------------------------------------------------------------------


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    small().export(folder)
    before = state(folder)
    for name in ("model.o", "libsmall.a", "main"):
        (folder / name).write_text("made by make")
    small(3.0).export(folder)
    after = state(folder)
    assert after.keys() == before.keys()
    assert after["weights.bin"] != before["weights.bin"]
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


@pytest.mark.parametrize("existing", [False, True])
def test_nothing_is_half_written(existing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "small"
    if existing:
        small().export(folder)
    before = state(folder) if existing else {}
    rename, replaced = Path.rename, []

    def fail(self: Path, target: Any) -> Path:
        replaced.append(target)
        if len(replaced) == 1 + existing:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(tc.GraphError) as raised:
        small(3.0).export(folder)
    assert str(raised.value) == f"{folder} cannot be written: No space left on device; name another folder"
    assert (state(folder) if existing else {}) == before
    assert [path.name for path in tmp_path.iterdir()] == ["small"] * existing


def test_folders_with_anything_else_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    small().export(folder)
    (folder / "notes.txt").write_text("mine")
    foreign, link, file = tmp_path / "foreign", tmp_path / "link", tmp_path / "file"
    foreign.mkdir()
    (foreign / "model.c").write_text("mine")
    (foreign / "export.json").write_text(json.dumps({"writer": "tc.graph"}))
    link.symlink_to(folder)
    file.write_text("mine")
    for place, message in (
        (folder, f"{folder} holds 'notes.txt', which no export has written; name a new folder"),
        (foreign, f"{foreign} holds 'export.json', which no export has written; name a new folder"),
        (link, f"{link} is there already, and not a folder; name a new one"),
        (file, f"{file} is there already, and not a folder; name a new one"),
        (file / "in", f"{file / 'in'} cannot be written: Not a directory; name another folder"),
    ):
        with pytest.raises(tc.GraphError) as raised:
            small(3.0).export(place)
        assert str(raised.value) == message
    assert (foreign / "model.c").read_text() == (folder / "notes.txt").read_text() == file.read_text() == "mine"


def test_others_may_not_write(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        small().export(tmp_path / "small")
    finally:
        os.umask(before)
    assert not any(path.stat().st_mode & 0o022 for path in (tmp_path / "small", *(tmp_path / "small").iterdir()))
