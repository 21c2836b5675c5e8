"""A cache as searches leave it, made by hand: several kernels, all kinds of failures, and names that mean harm."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import tc
from tc.artifact.packing import describe, options_text
from tc.cache.content.store import Store
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement, Run, Trial, Variant
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tc.tuner.search.search import Origin
from tc.tuner.trial.trial_outcome import FailureKind

HOSTILE: Final = "</script><script>alert(1)</script>"
MACHINE: Final = f"a machine {HOSTILE}"
TRIALS: Final = 200
_PER_GENERATION: Final = 16
_DEFAULT: Final = CpuOptions()
_ORIGINS: Final = (Origin.RANDOM, Origin.CROSSED, Origin.CROSSED, Origin.MUTATED, Origin.REFINED)
_PROOF: Final = "proven: every instance of 2 statements runs exactly once, in 2 places; 3 access relations in bounds"


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel to make up: seconds of its default, and how many times as quick the best candidates may become.

    ``bound``: part of the default's seconds.  ``failing``: share of the candidates without a time.
    """

    name: str
    text: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    default: float
    gain: float
    bound: float | None
    failing: float = 0.1
    runs: int = 1

    @property
    def ingredients(self) -> Ingredients:
        """What identifies it."""
        return Ingredients(
            program=f"def f() -> () {{ {self.text} }}",
            shapes=json.dumps([shape for _, shape in self.shapes]),
            dtypes=json.dumps(["float32"] * len(self.shapes)),
            strides=json.dumps([(place, "contiguous") for place, _ in enumerate(self.shapes)]),
            alignment="element",
            scalars="[]",
            aliases="[]",
            symbolic="[]",
            target="cpu",
            architecture="x86-64-v4+avx512vnni",
            compiler="gcc 12.2.0",
            generator="0.1.0",
        )


MATMUL: Final = Subject(
    "mm",
    "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }",
    (("A", (1024, 1024)), ("B", (1024, 1024))),
    8.1e-3,
    1.7,
    0.42,
    runs=2,
)
HARMFUL: Final = Subject(HOSTILE, f"def f() # {HOSTILE}", ((HOSTILE, (3, 4)),), 52e-6, 3.1, 0.2)
SETTLED: Final = Subject("copy", "def copy(float(N) x) -> (y) { y(n) = x(n) }", (("x", (1 << 20,)),), 310e-6, 1.0, 0.97)
BROKEN: Final = Subject("broken", "def broken(float(N) x) -> (y) { y(n) = x(n) }", (("x", (7,)),), 1e-3, 1.0, None, 1.0)
SUBJECTS: Final = (SETTLED, MATMUL, HARMFUL, BROKEN)


def fill(store: Store) -> None:
    """Adds runs, trials and measurements of all subjects, and a kernel that was not tuned."""
    for seed, subject in enumerate(SUBJECTS):
        store.add_kernel(subject.ingredients)
        best = _default_trial(subject, "")
        for number in range(subject.runs):
            run = Run(f"{seed:04x}{number:04x}", _settings(subject, seed + number), MACHINE, _moment(number, 0))
            store.add_run(run)
            found = tuple(_trials(subject, run.name, number, Random(f"{seed} {number}")))
            store.add_trials(found)
            timed = [trial for trial in found if trial.seconds is not None]
            best = min((best, *timed), key=lambda trial: trial.seconds or math.inf)
        if subject is not BROKEN:
            _decide(store, subject, best, run.name)
    store.add_kernel(replace(MATMUL.ingredients, shapes="[[1],[1]]"))


def filled(path: Path, key: bytes | None = None) -> Path:
    """A new file that ``fill`` has filled."""
    fill(Store.open(path, key=key))
    return path


def _settings(subject: Subject, seed: int) -> str:
    return json.dumps(
        {
            "kernel": subject.ingredients.key,
            "seed": seed,
            "strategy": "combined",
            "numerics": "any",
            "seeds": [],
            "budget": "200 trials",
            "definition": subject.name,
            "task": {
                "text": subject.text,
                "definition": subject.name,
                "signature": {"arguments": [[name, {"shape": shape}] for name, shape in subject.shapes]},
            },
            "bound": None if subject.bound is None else subject.bound * subject.default,
        }
    )


def _trials(subject: Subject, run: str, later: int, random: Random) -> Iterator[Trial]:
    """A search that comes closer to its gain; the tile and the vectorizer decide most of what it finds."""
    kinds = tuple(FailureKind)
    for number in range(TRIALS):
        trial = replace(_default_trial(subject, run), number=number, generation=number // _PER_GENERATION)
        trial = replace(trial, at=_moment(later, number))
        if number or later or subject.failing == 1.0:
            options, closeness = _candidate(random, number / TRIALS)
            seconds = subject.default / subject.gain * math.exp(2.5 * (1 - closeness) * random.random())
            trial = replace(trial, options=options_text(options), seconds=seconds, samples=(seconds, 1.01 * seconds))
            trial = replace(trial, origin=random.choice(_ORIGINS).value, source=_source_hash(options))
            if random.random() < subject.failing or number < 0.05 * TRIALS * (subject.failing > 0.5):
                kind = kinds[number % len(kinds)]
                reason = f"{kind.value} because of {HOSTILE}"
                trial = replace(trial, outcome=kind.value, reason=reason, seconds=None, samples=())
        yield trial


def _candidate(random: Random, progress: float) -> tuple[CpuOptions, float]:
    """Options, and how close they come to the best, from 0 to 1."""
    tile = tuple(random.choice((8, 16, 32, 64, 128)) for _ in range(random.randint(0, 2)))
    vectorize = random.random() < 0.6 + 0.35 * progress
    options = CpuOptions(
        schedule=ScheduleOptions(random.choice(tuple(Fusion)), tile, random.choice((1, 4, 16))),
        register_tile=(random.choice((4, 8, 12)), 16) if random.random() < 0.7 else None,
        vectorize=vectorize,
        gather_prefetch=random.randrange(1024),
        packed_operands=random.choice((0, 1 << 12, 1 << 17)),
    )
    fit = 1 - abs(math.log2(tile[0] / 32)) / 2 if tile else 0.2
    return options, min(1.0, 0.45 * vectorize + 0.3 * fit + 0.25 * progress)


def _default_trial(subject: Subject, run: str) -> Trial:
    return Trial(
        kernel=subject.ingredients.key,
        options=options_text(_DEFAULT),
        threads=2,
        machine=MACHINE,
        outcome="measured",
        reason="",
        origin=Origin.SEED.value,
        source=_source_hash(_DEFAULT),
        numerics="bits 12",
        seconds=subject.default,
        samples=(subject.default,),
        run=run,
        number=0,
        generation=0,
        at=_moment(0, 0),
    )


@functools.cache
def _executable() -> str:
    """The description of one with decisions, of another kernel."""
    return describe(tc.define("def f(float(N) x) -> (y) { y(i) = x(i) }").f.compile((7,)).executable)


def _source_hash(options: CpuOptions) -> str:
    """As if all options made a difference."""
    return hashlib.sha256(options_text(options).encode()).hexdigest()


def _decide(store: Store, subject: Subject, best: Trial, run: str) -> None:
    for trial in dict.fromkeys((_default_trial(subject, run), best)):
        variant = Variant(
            kernel=trial.kernel,
            options=trial.options,
            threads=trial.threads,
            source=f"// {HOSTILE}\nvoid kernel(void)\n{{\n}}\n",
            binary=b"\x7fELF",
            executable=_executable(),
            resources=json.dumps({"temporaries": 4096, "scratch": 0, "binary": 15480, "grids": []}),
            proof=_PROOF,
            numerics="bits 6a52e64178db3739",
            features="avx avx2",
            libc="glibc 2.22",
            origin=json.dumps({"made": f"tuned in run {run}", "at": _moment(1, 0), "python": "3.11"}),
        )
        store.add_variant(subject.ingredients, variant)
        seconds = trial.seconds or math.inf
        store.add_measurement(
            Measurement(
                kernel=trial.kernel,
                options=trial.options,
                threads=trial.threads,
                machine=MACHINE,
                policy="warm",
                seconds=seconds,
                low=0.985 * seconds,
                high=1.03 * seconds,
                default_seconds=subject.default,
                samples=11,
                run=run,
                at=_moment(2, 0),
            )
        )


def _moment(hour: int, second: int) -> str:
    return f"2026-01-01T{hour:02}:{second // 60:02}:{second % 60:02}.000000+00:00"
