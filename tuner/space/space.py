"""The search space of one kernel: options as genomes, and what a search does with them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.targets.numerics import Numerics
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.tuner.space.genes import ChoiceGene, CountGene, Gene, Genome, Path, Share, SizeGene, Value, plain, shares
from tc.tuner.space.legality import Settings, refusal, repaired
from tc.tuner.space.nest import Nest
from tc.tuner.space.option_values import genes_of
from tc.tuner.space.preferences import PLAIN, Preferences
from tc.tuner.trial.trial_outcome import Failed, FailureKind

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

# Of options.
REFUSED: Final = "the constraint refuses them"

# Smaller parts of a loop are sizes for their own sake: of vectors, of lines of the cache.
_SMALLEST_PART: Final = 16


@frozen
class Space:
    """The genes of options for the loops of one kernel; a genome has one value for each of them, in order.

    A list of sizes is a gene for how many there are and one for each place; places beyond the end hold None.
    """

    defaults: Options
    nest: Nest
    genes: tuple[Gene, ...]
    preferences: Preferences = PLAIN

    @staticmethod
    def of(
        options: type[CpuOptions] | type[GpuOptions],
        nest: Nest,
        *,
        fixed: Collection[str] = (),
        preferences: Preferences = PLAIN,
        numerics: Numerics | None = None,
    ) -> Space:
        """The space of a target's options; ``fixed``: names of options that keep their defaults.  ``numerics``: of all.

        What genomes stand for is allowed by the constraint of ``preferences``.

        TypeError for an option without values to try.
        """
        return Space(
            options(numerics=numerics or Numerics()), nest, tuple(genes_of(options, nest, fixed=fixed)), preferences
        )

    @property
    def size(self) -> int:
        """The number of encodings: more than there are kernels."""
        return math.prod(len(gene.values) + (isinstance(gene, SizeGene) and gene.open) for gene in self.genes)

    def decode(self, genome: Genome) -> Options | Failed:
        """The options that a genome stands for, or why it stands for none."""
        try:
            options = _with_settings(self.defaults, self._settings(genome))
        except OptionsError as error:
            return Failed(FailureKind.ILLEGAL, str(error))
        reason = refusal(options, self.nest)
        if reason is None and not self.preferences.allow(options):
            reason = REFUSED
        return options if reason is None else Failed(FailureKind.ILLEGAL, reason)

    def encode(self, options: Options, *, relative: bool = False) -> Genome:
        """The genome of the options, exact but for sizes that no gene has a place for and options that are fixed.

        ``relative``: sizes that are a part of a loop, at least a sixteenth, become shares of it.
        """
        return tuple(self._value(gene, _at(options, gene.path), relative=relative) for gene in self.genes)

    def adopt(self, genome: Genome) -> Genome:
        """A genome of the same kernel at other sizes, with its shares taken of the loops of this one.

        ValueError for a genome of another kernel.
        """
        if len(genome) != len(self.genes):
            raise ValueError(f"a genome of {len(genome)} genes is none of a space of {len(self.genes)}")
        moved = (
            Share.of(value.loop, value.divisor, self.nest.extents) if isinstance(value, Share) else value
            for value in genome
        )
        return tuple(moved)

    def random(self, random: Random) -> Genome:
        """Every gene at random, repaired."""
        return self._settled([gene.random(random) for gene in self.genes], random)

    def mutate(self, genome: Genome, random: Random, rate: float) -> Genome:
        """Every gene at random with this probability, repaired."""
        values = [
            gene.random(random) if random.random() < rate else value
            for gene, value in zip(self.genes, genome, strict=True)
        ]
        return self._settled(values, random)

    def cross(self, parents: Sequence[Genome], random: Random) -> Genome:
        """Every gene from any of the parents (uniform crossover), repaired."""
        return self._settled([random.choice(values) for values in zip(*parents, strict=True)], random)

    def neighbours(self, genome: Genome, random: Random) -> tuple[Genome, ...]:
        """The genomes with one gene a step away, repaired, in any order, each once."""
        found = dict.fromkeys(
            self._changed(genome, number, value, random)
            for number, gene in self._active(genome)
            for value in gene.neighbours(genome[number])
        )
        found.pop(genome, None)
        return tuple(random.sample(list(found), len(found)))

    def step(self, genome: Genome, random: Random) -> Genome:
        """Any of the genomes with one gene a step away."""
        number, gene = random.choice([(n, gene) for n, gene in self._active(genome) if gene.neighbours(genome[n])])
        return self._changed(genome, number, random.choice(gene.neighbours(genome[number])), random)

    def _active(self, genome: Genome) -> Iterator[tuple[int, Gene]]:
        """The genes that say something, with their numbers: all but places beyond the end of a list."""
        for number, (gene, value) in enumerate(zip(self.genes, genome, strict=True)):
            if value is not None or not (isinstance(gene, SizeGene) and gene.place is not None):
                yield number, gene

    def _changed(self, genome: Genome, number: int, value: Value, random: Random) -> Genome:
        return self._settled([*genome[:number], value, *genome[number + 1 :]], random)

    def _settled(self, values: Sequence[Value], random: Random) -> Genome:
        """A genome with as many sizes as its counts say, new ones at random, and repaired."""
        settled: list[Value] = []
        count = 0
        for gene, value in zip(self.genes, values, strict=True):
            if isinstance(gene, CountGene):
                count = value if isinstance(value, int) else 0
            elif isinstance(gene, SizeGene) and gene.place is not None:
                beyond = gene.place >= count
                settled.append(None if beyond else gene.random(random) if value is None else value)
                continue
            settled.append(value)
        return self.repair(tuple(settled))

    def repair(self, genome: Genome) -> Genome:
        """The genome with as few changes as make it legal, as far as can be told before compiling."""
        settings = self._settings(genome)
        legal = repaired(settings, self.nest)
        if legal == settings:
            return genome
        return tuple(
            old if legal[gene.path] == settings[gene.path] else self._value(gene, legal[gene.path])
            for gene, old in zip(self.genes, genome, strict=True)
        )

    def _settings(self, genome: Genome) -> Settings:
        settings: dict[Path, object] = {}
        for gene, value in zip(self.genes, genome, strict=True):
            match gene:
                case ChoiceGene(path) | SizeGene(path, place=None):
                    settings[path] = plain(value)
                case CountGene(path):
                    settings[path] = None if value is None else ()
                case SizeGene(path):
                    sizes = settings[path]
                    if isinstance(sizes, tuple) and value is not None:
                        settings[path] = (*sizes, plain(value))
                case _:
                    assert_never(gene)
        return settings

    def _value(self, gene: Gene, setting: object, *, relative: bool = False) -> Value:
        match gene:
            case ChoiceGene(_, values):
                return next((value for value in values if value == setting), values[0])
            case CountGene(_, most):
                return min(len(setting), most) if isinstance(setting, tuple) else None
            case SizeGene(_, _, place):
                if place is not None:
                    setting = setting[place] if isinstance(setting, tuple) and place < len(setting) else None
                if not isinstance(setting, int):
                    return None
                share = None if place is None or not relative else self._share(setting, place)
                return gene.value_of(setting) if share is None else share
            case _:
                assert_never(gene)

    def _share(self, size: int, place: int) -> Share | None:
        """The part of the loop at this place that comes to this size, else the largest part of another one."""
        parts = [part for part in shares(self.nest.extents) if part.size == size and part.divisor <= _SMALLEST_PART]
        own = tuple(self.nest.extents)[place : place + 1]
        return min(parts, key=lambda part: (part.loop not in own, part.divisor), default=None)


def _at(record: object, path: Path) -> object:
    for name in path:
        record = getattr(record, name)
    return record


def _with_settings(record: Record, settings: Settings) -> Record:
    """The record with other values at the paths; OptionsError if they do not go together."""
    changed: dict[str, object] = {}
    for name, inner in _by_first_name(settings):
        below = {path: value for path, value in inner.items() if path}
        changed[name] = _with_settings(getattr(record, name), below) if below else inner[()]
    return dataclasses.replace(record, **changed)


def _by_first_name(settings: Settings) -> Iterator[tuple[str, Mapping[Path, object]]]:
    for name in dict.fromkeys(path[0] for path in settings):
        yield name, {path[1:]: value for path, value in settings.items() if path[0] == name}
