"""The records of a cache, as plain data: one class for the rows of one table."""

from __future__ import annotations

import dataclasses
import re
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.cache.format.encoding import digest_of


class _Content:
    """A record's digest is the hash of all that it says."""

    __slots__ = ()

    @property
    def digest(self) -> str:
        """SHA-256 over every field, in hexadecimal; CacheError for numbers that are not finite."""
        assert dataclasses.is_dataclass(self)
        names = (field.name for field in dataclasses.fields(self))
        return digest_of(type(self).__name__, ((name, getattr(self, name)) for name in names))

    @property
    def identity(self) -> str:
        """The name under which the record is stored, of which a cache holds one: unless it has another, its digest."""
        return self.digest


@frozen
class Variant(_Content):
    """One compiled form of a kernel, all that a process without a compiler needs in order to call it.

    ``kernel``: the key of its ingredients.  ``options``: canonical JSON.  ``executable``: JSON, what a call needs
    beside the binary.  ``resources``: JSON, what the kernel takes of its device.  ``proof``: the verdict of the
    proof.  ``numerics``: the class of kernels with the same bits.  ``features`` and ``libc``: what the binary needs
    of processor and libraries.  ``origin``: JSON, who made it, when and how.
    """

    kernel: str
    options: str
    threads: int
    source: str
    binary: bytes
    executable: str
    resources: str
    proof: str
    numerics: str
    features: str
    libc: str
    origin: str

    @property
    def identity(self) -> str:
        """The hash of kernel, options and threads: a cache holds one variant for each."""
        return variant_identity(self.kernel, self.options, self.threads)


CHOSEN: Final = ", chosen"
"""The end of a measurement's policy whose variant was chosen by hand: it goes before what is quicker, until it is
measured again."""
PREDICTED: Final = "predicted"
"""The beginning of a measurement's policy that is none: the time was predicted.  It goes behind all that are."""


@frozen
class Measurement(_Content):
    """How long a variant took on one machine, with an interval of confidence; all times in seconds.

    ``policy``: how time was taken (warm or cold caches and so on).  ``default_seconds``: the time of the untuned
    default beside it.  ``samples``: how many were taken.  ``run``: name of the run.  ``at``: ISO 8601, UTC.
    """

    kernel: str
    options: str
    threads: int
    machine: str
    policy: str
    seconds: float
    low: float
    high: float
    default_seconds: float
    samples: int
    run: str
    at: str

    @property
    def chosen(self) -> bool:
        """Whether its variant goes before what is quicker."""
        return self.policy.endswith(CHOSEN)

    @property
    def predicted(self) -> bool:
        """Whether nothing was measured."""
        return self.policy.startswith(PREDICTED)

    @property
    def variant(self) -> str:
        """The identity of the variant that was measured."""
        return variant_identity(self.kernel, self.options, self.threads)


@frozen
class Trial(_Content):
    """One candidate that a run tried, also if nothing came of it; never changed once it is stored.

    ``outcome`` and ``reason``: what happened and why.  ``seconds``: the time that counts, None without one.
    ``samples``: every time taken, in seconds.  ``origin``: how the search came to it.  ``source``: the hash of its
    source, empty where none was made; trials of one source share its time.  ``numerics``: as of a variant, empty where
    it was not run.  ``run``, ``number``, ``generation``: its place in the search.  ``at``: ISO 8601, UTC.
    """

    kernel: str
    options: str
    threads: int
    machine: str
    outcome: str
    reason: str
    origin: str
    source: str
    numerics: str
    seconds: float | None
    samples: tuple[float, ...]
    run: str
    number: int
    generation: int
    at: str


@frozen
class Run(_Content):
    """One search for better variants.  ``name``: unique, in hexadecimal.  ``started``: ISO 8601, UTC."""

    name: str
    settings: str
    machine: str
    started: str

    @property
    def identity(self) -> str:
        """The hash of the name: a cache holds one run of a name."""
        return digest_of("run name", (("name", self.name),))


@frozen
class Text(_Content):
    """The parsed meaning of a raw text, so that it need not be parsed again.

    ``key``: ``text_key`` of the text.  ``definitions``: JSON.
    """

    key: str
    definitions: str

    @property
    def identity(self) -> str:
        """The key: a cache holds one meaning of a text."""
        return self.key


@frozen
class Native(_Content):
    """A compiled helper of ours that belongs to no kernel.  ``source``: hash of what it was compiled from."""

    name: str
    machine: str
    source: str
    binary: bytes

    @property
    def identity(self) -> str:
        """The hash of all but the binary: a cache holds one binary for each."""
        return native_identity(self.name, self.machine, self.source)


@frozen
class ModelInterface(_Content):
    """What callers must know of a model, so that it need not be read for that.

    ``model``: the digest of its contents.  ``reader``: which version of which package has read it, if not this one.
    ``interface``: JSON.
    """

    model: str
    generator: str
    reader: str
    interface: str

    @property
    def identity(self) -> str:
        """The hash of all but the interface: a cache holds one for each."""
        names = ("model", "generator", "reader")
        return digest_of("model", ((name, getattr(self, name)) for name in names))


@frozen
class Plan(_Content):
    """How a graph of a model runs, so that it need not be made, rewritten, divided and planned again.

    ``model`` and ``reader``: as of ``ModelInterface``.  ``wanted``: JSON, what the plan is for: shapes, outputs,
    settings.  ``target``, ``architecture``, ``threads``, ``generator``: as of kernels.  ``title``: for listings.
    ``kernels``: JSON, the keys of its kernels.  ``constants``: JSON, the identities of the constants that it needs.
    ``steps``: JSON, the plan itself.  ``contents``: small constants, one after the other.
    """

    model: str
    wanted: str
    target: str
    architecture: str
    threads: int
    generator: str
    reader: str
    title: str
    kernels: str
    constants: str
    steps: str
    contents: bytes

    @property
    def identity(self) -> str:
        """The hash of what it is for and of what has made it: a cache holds one plan for each."""
        names = ("model", "wanted", "target", "architecture", "threads", "generator", "reader")
        return digest_of("plan", ((name, getattr(self, name)) for name in names))


@frozen
class Constant(_Content):
    """The contents of a constant that no model holds, since it was computed; plans share it."""

    contents: bytes


@frozen
class LibraryTrial(_Content):
    """How long a library takes for a node of a graph, beside our kernels; who computes the node follows from it.

    ``work``: the hash of what is computed.  ``library``: its name, its version and its threads.  ``threads``: ours.
    ``generator``: as of kernels.  ``outcome``: whether the results were right, or why not.  ``ours`` and ``theirs``:
    the least of several times, in seconds; None where results were wrong.  ``at``: ISO 8601, UTC.
    """

    work: str
    machine: str
    threads: int
    library: str
    generator: str
    outcome: str
    ours: float | None
    theirs: float | None
    at: str

    @property
    def identity(self) -> str:
        """The hash of what was measured, where, and with what: a cache holds one trial for each."""
        return library_trial_identity(self.work, self.machine, self.threads, self.library, self.generator)


# Those of the grammar: other ones are errors.
_SPACES: Final = "\t\f\v\r\n"
_BYTE_ORDER_MARK: Final = "\ufeff"

Record: TypeAlias = (
    Variant | Measurement | Trial | Run | Text | Native | ModelInterface | Plan | Constant | LibraryTrial
)


def variant_identity(kernel: str, options: str, threads: int) -> str:
    """The name under which a variant is stored."""
    return digest_of("variant", (("kernel", kernel), ("options", options), ("threads", threads)))


def native_identity(name: str, machine: str, source: str) -> str:
    """The name under which a helper is stored."""
    return digest_of("native", (("name", name), ("machine", machine), ("source", source)))


def library_trial_identity(work: str, machine: str, threads: int, library: str, generator: str) -> str:
    """The name under which the trial of a library is stored."""
    values = (("work", work), ("machine", machine), ("threads", threads), ("library", library))
    return digest_of("library trial", (*values, ("generator", generator)))


def text_key(text: str, generator: str) -> str:
    """The name under which the meaning of a text is stored, for one version of this package.

    Texts that differ only in what the grammar ignores, spaces between words and comments, mean the same.
    """
    return digest_of("text", (("text", _words(text)), ("generator", generator)))


def _words(text: str) -> str:
    if "#" in text:
        text = re.sub(r"#[^\r\n]*", " ", text)
    for space in _SPACES:
        text = text.replace(space, " ")
    return " ".join(filter(None, text.removeprefix(_BYTE_ORDER_MARK).split(" ")))
