"""Target descriptions: which machine a kernel is made for, always by name, never "native"."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from tc.base.errors import DeviceError, OptionsError, nearest
from tc.base.frozen import frozen

if TYPE_CHECKING:  # processes that only call kernels of processors need no GPUs
    from tc.targets.machine import GpuMachine
    from tc.targets.multiprocessor import Multiprocessor


@frozen
class _March:
    """One architecture level: its vector registers and, per processor flag of Linux, the compiler's option, if any.

    ``streams``: compilers offer stores of whole lines past the caches.

    Options are spelled out instead of ``-march=x86-64-v3``, which compilers before GCC 11 do not know.
    """

    machine: str
    vector_bytes: int
    vector_registers: int
    base: tuple[str, ...]
    features: Mapping[str, str]
    streams: bool = False


_V2: Final = {
    "cx16": "-mcx16",
    "lahf_lm": "-msahf",
    "popcnt": "-mpopcnt",
    "pni": "-msse3",
    "ssse3": "-mssse3",
    "sse4_1": "-msse4.1",
    "sse4_2": "-msse4.2",
}
_V3: Final = {
    **_V2,
    "avx": "-mavx",
    "avx2": "-mavx2",
    "bmi1": "-mbmi",
    "bmi2": "-mbmi2",
    "f16c": "-mf16c",
    "fma": "-mfma",
    "abm": "-mlzcnt",
    "movbe": "-mmovbe",
    "xsave": "-mxsave",
}
_V4: Final = {
    **_V3,
    "avx512f": "-mavx512f",
    "avx512bw": "-mavx512bw",
    "avx512cd": "-mavx512cd",
    "avx512dq": "-mavx512dq",
    "avx512vl": "-mavx512vl",
}
# The level says it all to compilers.
_ARM_V8_2: Final = {"crc32": "", "atomics": "", "asimdrdm": "", "dcpop": ""}
# GCC moves parts of vectors through MMX registers, and leaves them in use: then the x87 unit has none left, and the
# next fmod or long double of whoever runs on this thread is NaN.
_X86: Final = ("-march=x86-64", "-mno-mmx")
# Compilers tuned for "generic" may halve the vectors; whole ones are as fast (Zen 4) or faster (two 512-bit units).
_WIDE: Final = (*_X86, "-mprefer-vector-width=512")

# From the plainest to the richest of each machine.
_MARCHES: Final[Mapping[str, _March]] = MappingProxyType(
    {
        "x86-64": _March("x86_64", 16, 16, _X86, {}, streams=True),
        "x86-64-v2": _March("x86_64", 16, 16, _X86, _V2, streams=True),
        "x86-64-v3": _March("x86_64", 32, 16, _X86, _V3, streams=True),
        "x86-64-v4": _March("x86_64", 64, 32, _WIDE, _V4, streams=True),
        "armv8-a": _March("aarch64", 16, 32, ("-march=armv8-a",), {}),
        "armv8.2-a": _March("aarch64", 16, 32, ("-march=armv8.2-a",), _ARM_V8_2),
    }
)


@frozen
class _Extension:
    """A feature beyond a level: the flag of Linux for it, and the compiler's option, or what is added to the first."""

    march: str
    feature: str
    option: str


_EXTENSIONS: Final[Mapping[str, _Extension]] = MappingProxyType(
    {
        "avx512bf16": _Extension("x86-64-v4", "avx512_bf16", "-mavx512bf16"),
        "avx512vbmi": _Extension("x86-64-v4", "avx512vbmi", "-mavx512vbmi"),
        "avx512vnni": _Extension("x86-64-v4", "avx512_vnni", "-mavx512vnni"),
        "bf16": _Extension("armv8.2-a", "bf16", "+bf16"),
        "i8mm": _Extension("armv8.2-a", "i8mm", "+i8mm"),
    }
)

_MACHINE_NAMES: Final[Mapping[str, str]] = MappingProxyType({"amd64": "x86_64", "arm64": "aarch64"})


def machine_name(name: str) -> str:
    """The name that Linux on that machine gives it, for one that another system or a compiler gives it."""
    return _MACHINE_NAMES.get(name.lower(), name.lower())


@frozen
class CpuTarget:
    """A processor family: an architecture level and the extensions beyond it, by name.

    ``str(target)`` is the canonical name (``cpu:x86-64-v4+avx512vnni``), which ``parse_target`` reads back.
    """

    march: str
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.march not in _MARCHES:
            raise OptionsError(_unknown("cpu architecture", self.march, _MARCHES))
        for name in self.extensions:
            if name not in _EXTENSIONS:
                raise OptionsError(_unknown("cpu extension", name, _EXTENSIONS))
            if _EXTENSIONS[name].march != self.march:
                raise OptionsError(f"cpu extension {name!r} belongs to {_EXTENSIONS[name].march}, not to {self.march}")

    def __str__(self) -> str:
        return "+".join((f"cpu:{self.march}", *self.extensions))

    @property
    def vector_bytes(self) -> int:
        """Bytes of one vector register."""
        return _MARCHES[self.march].vector_bytes

    @property
    def vector_registers(self) -> int:
        """Number of vector registers."""
        return _MARCHES[self.march].vector_registers

    @property
    def streams(self) -> bool:
        """Whether whole lines of memory can be written past the caches."""
        return _MARCHES[self.march].streams

    @property
    def machine(self) -> str:
        """The machine, as ``uname -m`` calls it."""
        return _MARCHES[self.march].machine

    @property
    def flags(self) -> tuple[str, ...]:
        """Options that make GCC and clang generate code for this target."""
        march, options = _MARCHES[self.march], [_EXTENSIONS[name].option for name in self.extensions]
        level, *others = march.base
        added = "".join(option for option in options if option.startswith("+"))
        own = (option for option in options if not option.startswith("+"))
        return (level + added, *others, *filter(None, march.features.values()), *own)

    @property
    def features(self) -> frozenset[str]:
        """Flags of ``/proc/cpuinfo`` that a processor must show to run code for this target."""
        extensions = {_EXTENSIONS[name].feature for name in self.extensions}
        return frozenset(extensions | _MARCHES[self.march].features.keys())


@frozen
class EmulatorTarget:
    """A GPU whose threads are run one after the other, by code for the plainest processor of this machine's kind."""

    host: CpuTarget

    def __str__(self) -> str:
        return "emulator"

    @property
    def machine(self) -> str:
        """The machine that it runs on, as ``uname -m`` calls it."""
        return self.host.machine

    @property
    def flags(self) -> tuple[str, ...]:
        """Options of C compilers: mostly, what is emulated runs for less time than it takes to compile."""
        return (*self.host.flags, "-O1")

    @property
    def features(self) -> frozenset[str]:
        """Flags of ``/proc/cpuinfo`` that the processor must show."""
        return self.host.features


@frozen
class CudaTarget:
    """NVIDIA's GPUs of one architecture, by the name that the compiler has for it: ``sm_90``."""

    architecture: str

    def __post_init__(self) -> None:
        from tc.targets.machine import GPUS

        if self.architecture not in GPUS:
            raise OptionsError(_unknown("cuda architecture", self.architecture, GPUS))

    def __str__(self) -> str:
        return f"cuda:{self.architecture}"

    @property
    def gpu(self) -> GpuMachine:
        """What the GPU is like."""
        from tc.targets.machine import GPUS

        return GPUS[self.architecture]

    @property
    def multiprocessor(self) -> Multiprocessor:
        """What the blocks of a kernel share."""
        return self.gpu.multiprocessor


@frozen
class OpenClTarget:
    """The first device that OpenCL finds on this machine."""

    def __str__(self) -> str:
        return "opencl"


HostTarget: TypeAlias = CpuTarget | EmulatorTarget
Target: TypeAlias = HostTarget | CudaTarget | OpenClTarget


@frozen
class Processor:
    """What this machine is: its name as ``uname -m`` gives it, and the flags and the model of ``/proc/cpuinfo``."""

    machine: str
    features: frozenset[str]
    model: str = ""


@functools.cache
def processor() -> Processor:
    """The processor of this machine; without ``/proc/cpuinfo`` it shows no features beyond the plainest.

    DeviceError outside Linux.
    """
    if sys.platform != "linux":
        raise DeviceError(f"target 'cpu' is not available: it runs on Linux, and this system is {sys.platform}")
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        text = ""
    machine = machine_name(os.uname().machine)
    return Processor(machine, frozenset(_line(text, "flags", "Features").split()), _line(text, "model name") or machine)


def _line(cpuinfo: str, *keys: str) -> str:
    """What the first line with one of these keys says."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    return ""


def resolve(host: Processor) -> CpuTarget:
    """The richest target that ``host`` runs; DeviceError for a machine that no target describes."""
    fitting = [name for name in _MARCHES if _runs(CpuTarget(name), host)]
    if not fitting:
        machines = ", ".join(sorted({march.machine for march in _MARCHES.values()}))
        raise DeviceError(f"target 'cpu' is not available: this machine is {host.machine}, tc knows {machines}")
    march = fitting[-1]
    extensions = [name for name, extension in _EXTENSIONS.items() if extension.march == march]
    return CpuTarget(march, tuple(name for name in extensions if _runs(CpuTarget(march, (name,)), host)))


def plainest(host: Processor) -> CpuTarget:
    """The target that every processor of this machine's kind runs; DeviceError for a machine that none describes."""
    resolve(host)
    return next(CpuTarget(name) for name, march in _MARCHES.items() if march.machine == host.machine)


def _runs(target: CpuTarget, host: Processor) -> bool:
    return target.machine == host.machine and target.features <= host.features


def check_runs(target: HostTarget, host: Processor) -> None:
    """DeviceError, saying what is missing, when ``host`` cannot run code for ``target``."""
    if target.machine != host.machine:
        raise DeviceError(f"target '{target}' does not run here: this machine is {host.machine}; use target 'cpu'")
    missing = sorted(target.features - host.features)
    if missing:
        raise DeviceError(
            f"target '{target}' does not run here: this processor lacks {', '.join(missing)}; use target 'cpu'"
        )


def parse_target(text: str, host: Processor | None = None) -> Target:
    """The target called ``text``: ``cpu`` is ``host`` (this machine), ``cpu:x86-64-v3`` and ``cuda:sm_90`` are
    architectures, ``opencl`` is the device that OpenCL finds, ``emulator`` runs here what a GPU would run.

    OptionsError for a name that means nothing, and for ``cuda`` alone, which ``named_target`` knows;
    DeviceError for a target that cannot serve.
    """
    kind, colon, architecture = text.partition(":")
    if text == "cuda":
        raise OptionsError("target 'cuda' names no architecture; name one, as in 'cuda:sm_90'")
    if kind == "cuda" and colon:
        return CudaTarget(architecture)
    if text == "opencl":
        return OpenClTarget()
    if text == "emulator":
        return EmulatorTarget(plainest(processor() if host is None else host))
    if kind != "cpu":
        raise OptionsError(_unknown("target", text, ("cpu", "emulator", "opencl", "cuda")))
    return CpuTarget(*_cpu_architecture(architecture)) if colon else resolve(processor() if host is None else host)


def parse_cpu_target(text: str) -> CpuTarget:
    """``parse_target`` for names of processors; OptionsError for any other."""
    target = parse_target(text)
    if not isinstance(target, CpuTarget):
        raise OptionsError(f"target must be a cpu, got {text!r}")
    return target


def _cpu_architecture(text: str) -> tuple[str, tuple[str, ...]]:
    march, *extensions = text.split("+")
    return march, tuple(sorted(set(extensions)))


def _unknown(what: str, name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    guess = nearest(name, known)
    hint = f"did you mean {guess!r}?" if guess else f"known: {', '.join(known)}"
    return f"unknown {what} {name!r}; {hint}"
