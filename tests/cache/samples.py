"""Kernels, variants and what was measured of them, by number: the same number gives the same record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from tc.cache.content.store import Store
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import (
    Constant,
    LibraryTrial,
    Measurement,
    ModelInterface,
    Native,
    Plan,
    Run,
    Text,
    Trial,
    Variant,
)

MACHINE: Final = "a machine"
OTHER_MACHINE: Final = "another machine"
DAWN: Final = "2026-01-01T00:00:00.000000+00:00"


def kernel(number: int = 0) -> Ingredients:
    """Every second kernel has the program of its predecessor, at another shape."""
    return Ingredients(
        program=f"def f(float(N) a) -> (b) {{ b(i) = a(i) + {number // 2} }}",
        shapes=f"[[{number}]]",
        dtypes='["float32"]',
        strides="[[1]]",
        alignment="[64]",
        scalars="{}",
        aliases="[]",
        symbolic="{}",
        target="cpu",
        architecture="x86-64-v3",
        compiler=f"gcc {12 + number % 2}",
        generator="0.1.0",
    )


def variant(number: int = 0, options: str = "{}", threads: int = 2, size: int = 100) -> Variant:
    return Variant(
        kernel=kernel(number).key,
        options=options,
        threads=threads,
        source=f"void f{number}(void) {{}} /* {options} */",
        binary=Random(f"{number} {options} {threads}").randbytes(size),
        executable='{"grid": [1]}',
        resources='{"registers": 12}',
        proof="proven",
        numerics="one",
        features="avx2,fma",
        libc="glibc 2.36",
        origin='{"by": "a test"}',
    )


def measurement(
    of: Variant, seconds: float = 1.0, machine: str = MACHINE, at: str = DAWN, policy: str = "warm"
) -> Measurement:
    return Measurement(
        kernel=of.kernel,
        options=of.options,
        threads=of.threads,
        machine=machine,
        policy=policy,
        seconds=seconds,
        low=seconds * 0.75,
        high=seconds * 1.25,
        default_seconds=2.0 * seconds,
        samples=9,
        run="cafe",
        at=at,
    )


def trial(number: int = 0, kernel_number: int = 0, threads: int = 2, machine: str = MACHINE) -> Trial:
    failed = number % 3 == 0
    return Trial(
        kernel=kernel(kernel_number).key,
        options=f'{{"tile": {number}}}',
        threads=threads,
        machine=machine,
        outcome="illegal" if failed else "timed",
        reason="does not divide" if failed else "",
        origin="random",
        source="" if failed else f"{number:064x}",
        numerics="" if failed else "bits 12",
        seconds=None if failed else 0.5 / (1 + number),
        samples=() if failed else (0.5, 0.25, 1e-9 * number),
        run="cafe",
        number=number,
        generation=number // 10,
        at=DAWN,
    )


def run(name: str = "cafe") -> Run:
    return Run(name, '{"seed": 1}', MACHINE, DAWN)


def text(number: int = 0) -> Text:
    return Text(f"{number:064x}", f'{{"definitions": {number}}}')


def native(number: int = 0) -> Native:
    return Native("pool", MACHINE, f"{number:064x}", b"\x7fELF" + bytes([number % 256]) * 50)


def interface(number: int = 0) -> ModelInterface:
    return ModelInterface(f"{number:064x}", "0.1.0", "onnx 1.22", f'{{"name": "model {number}"}}')


def constant(number: int = 0, size: int = 100) -> Constant:
    return Constant(Random(number).randbytes(size))


def plan(number: int = 0, kernels: Sequence[int] = (0,), constants: Sequence[int] = (), threads: int = 2) -> Plan:
    """A plan of the model ``number``."""
    return Plan(
        model=interface(number).model,
        wanted='{"outputs": ["y"]}',
        target="cpu",
        architecture="x86-64-v3",
        threads=threads,
        generator="0.1.0",
        reader="onnx 1.22",
        title=f"model {number}(x(1))",
        kernels=json.dumps([kernel(one).key for one in kernels]),
        constants=json.dumps([constant(one).identity for one in constants]),
        steps=f'{{"plan": {number}}}',
        contents=bytes([number % 256]) * 10,
    )


def library_trial(number: int = 0) -> LibraryTrial:
    return LibraryTrial(f"{number:064x}", MACHINE, 2, "BLAS 3", "generator", "right", 0.5, 0.25, DAWN)


def fill(store: Store, seed: int, count: int = 6) -> None:
    """Records of all kinds at random, of which two caches have some in common and contradict each other in others."""
    random = Random(seed)
    store.add_run(run())
    store.add_run(run(f"{random.randrange(3):x}"))
    for _ in range(count):
        number, options = random.randrange(count), f'{{"tile": {random.randrange(3)}}}'
        one = variant(number, options, random.choice((1, 2)))
        store.add_variant(kernel(number), replace(one, origin=f'"{random.randrange(2)}"'))
        machine = random.choice((MACHINE, OTHER_MACHINE))
        at = f"2026-01-0{random.randint(1, 9)}"
        store.add_measurement(measurement(one, float(random.randint(1, 4)), machine, at))
        store.add_trials(trial(random.randrange(20), number) for _ in range(3))
        store.add_text(text(random.randrange(5)))
        store.add_native(native(random.randrange(5)))
        shared = number % 3
        store.add_plan(interface(number), [constant(shared)], plan(number, (number,), (shared,), one.threads))
        store.add_library_trial(library_trial(number))


def filled(path: Path, seed: int = 0, key: bytes | None = None, count: int = 6) -> Path:
    """A new file that ``fill`` has filled."""
    fill(Store.open(path, key=key), seed, count)
    return path


def set_version(path: Path, version: str) -> None:
    """A cache file says that it is of another version of the format."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'version'", (version,))
