"""The command line of ``python -m benchmarks``: its commands, and their options."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from types import MappingProxyType
from typing import Final

PEERS: Final = MappingProxyType(
    {"cpu": ("torch", "compile", "numpy", "jax"), "cuda": ("torch", "compile", "triton", "jax")}
)
WORKLOADS: Final = ("mnist", "gpt", "resnet18", "unet")
SUITES: Final = ("paper", "modern", "language", "operators", "all")


def command_line() -> argparse.ArgumentParser:
    """What ``python -m benchmarks`` takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the project on this machine.")
    _add_common(parser)
    known = "; ".join(f"{kind}: {','.join(names)}" for kind, names in PEERS.items())
    parser.add_argument("--peers", type=_names, default=None, help=f"of these, or empty for none; {known}")
    parser.add_argument("--ahead", type=int, default=1, help="cases that are made ready at a time")
    parser.add_argument("--json", type=Path, default=None, help="file for everything that was measured")
    parser.add_argument("--plot", type=Path, default=None, help="file for a picture")
    commands = parser.add_subparsers(dest="command", metavar="command", title="other measurements")
    commands.add_parser("latency", help="time of import, definition, translation and warm calls")
    demo = commands.add_parser("demo", help="kernels on a photograph, each checked against the oracle")
    demo.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the picture")
    table = commands.add_parser("table", help="print a file of results as a table in Markdown")
    table.add_argument("results", type=Path)
    table.add_argument("--plot", type=Path, default=None, help="file for a picture")
    story = commands.add_parser("story", help="define, call, tune, report and ship two kernels, and run them elsewhere")
    story.add_argument("--output", type=Path, default=Path("story-output"), help="folder for all of it")
    story.add_argument("--budget", default="1m", help="of each kernel")
    offline = commands.add_parser("offline", help="fill a folder for a machine with a GPU and without a network")
    offline.add_argument("folder", type=Path)
    offline.add_argument("--python", default="3.12", help="version there, such as 3.12")
    offline.add_argument("--present", type=_names, default=(), help="packages that are there, separated by commas")
    offline.add_argument(
        "--with",
        dest="added",
        type=_names,
        default=(),
        help="frameworks to add for Linux on x86-64, of torch,triton,jax,cupy: some GiB; PyCUDA has no wheels",
    )
    search = commands.add_parser("search", help="look for options that are quicker than the default ones")
    _add_common(search)
    search.add_argument("--budget", default="1m", help="per case, such as 90s, 10m or '200 trials'")
    search.add_argument("--cache", type=Path, default=None, help="file that trials and winners go to")
    search.add_argument("--seed", type=int, default=0, help="of the random choices")
    search.add_argument("--record", type=Path, default=None, help="file of what the searches were told")
    compiled = commands.add_parser("compile", help="compile the suite, and say what each stage of it takes")
    compiled.add_argument("--suite", choices=SUITES, default="all")
    compiled.add_argument("--kernels", type=_names, default=(), help="cases or problems, separated by commas")
    compiled.add_argument("--target", default="cuda:sm_90a", help="such as cuda:sm_80, cpu or emulator")
    compiled.add_argument("--with", dest="json_options", default=None, help="options of all of them, in JSON")
    commands.add_parser("predict", help="predicted times of kernels on GPUs beside measured and published ones")
    proofs = commands.add_parser("proofs", help="how long it takes until any options are proven or refused")
    proofs.add_argument("--kernels", type=_names, default=(), help="definitions, separated by commas")
    proofs.add_argument("--targets", type=_names, default=(), help="such as cpu:x86-64-v4,cuda:sm_90; nothing runs")
    proofs.add_argument("--count", type=int, default=500, help="random options for each")
    proofs.add_argument("--seed", type=int, default=0, help="of the random choices")
    proofs.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    overlapping = commands.add_parser("overlapping", help="`+=!` whose elements several instances write")
    overlapping.add_argument("--rounds", type=int, default=100, help="calls of each form, in turns")
    cliffs = commands.add_parser("cliffs", help="sizes at which a kernel is much slower than beside them")
    cliffs.add_argument("--kernels", type=_names, default=(), help="operators, separated by commas")
    cliffs.add_argument("--shapes", type=int, default=300, help="of each operator, at random")
    cliffs.add_argument("--seed", type=int, default=0, help="of the random choices")
    scaling = commands.add_parser("scaling", help="count how kernels would be divided among many threads")
    scaling.add_argument("--suite", choices=SUITES, default="all")
    scaling.add_argument("--kernels", type=_names, default=(), help="cases or problems, separated by commas")
    scaling.add_argument("--threads", type=_counts, default=(1, 2, 16, 64, 192), help="separated by commas")
    apart = commands.add_parser("apart", help="scatters, sparse products and recurrences, in processes apart")
    backward = commands.add_parser("backward", help="backward passes and steps of training, in processes apart")
    for command in (apart, backward):
        command.add_argument("--kernels", type=_names, default=(), help="cases, separated by commas")
        command.add_argument("--rounds", type=int, default=5, help="processes of each contender, in turns")
        places = ("cpu", "cuda")
        command.add_argument("--target", choices=places, default="cpu", help="cuda: beside PyTorch, without goals")
    models = commands.add_parser("models", help="imported models beside onnxruntime, in processes apart")
    models.add_argument("paths", nargs="+", help="files, with shapes of inputs as in model.onnx=1x3x224x224,1x10")
    models.add_argument("--threads", type=int, default=2, help="of both")
    models.add_argument("--rounds", type=int, default=2, help="of turns")
    models.add_argument("--cache", type=Path, help="of tc-tune, with the kernels of ours; none compiles all anew")
    bench = commands.add_parser("kernelbench", help="KernelBench's problems beside eager PyTorch and Inductor")
    bench.add_argument("path", type=Path, help="a checkout of KernelBench")
    bench.add_argument("--level", type=int, action="append", default=[], help="1, 2 or 3; may be repeated")
    bench.add_argument("--problems", type=_names, default=(), help="numbers, separated by commas")
    bench.add_argument("--seeds", type=int, default=5, help="of weights and inputs that are compared")
    bench.add_argument("--threads", type=int, default=2, help="of every contender")
    bench.add_argument("--rounds", type=int, default=3, help="of turns; 0: results are only compared")
    bench.add_argument(
        "--contenders", type=_compiled, default=("inductor", "ours"), help="beside eager PyTorch: of inductor,ours"
    )
    bench.add_argument("--output", type=Path, default=None, help="folder for the results and a picture")
    training = commands.add_parser("training", help="models in training beside eager PyTorch and Inductor")
    training.add_argument("names", nargs="*", default=WORKLOADS, help=f"of {', '.join(WORKLOADS)}; default: all")
    training.add_argument("--threads", type=int, default=2, help="of every contender")
    training.add_argument("--rounds", type=int, default=5, help="of turns")
    training.add_argument("--output", type=Path, default=None, help="folder for the results and a picture")
    matrices = commands.add_parser("matrices", help="products by matrix instructions of a GPU beside PyTorch's")
    matrices.add_argument("--kernels", type=_names, default=(), help="cases, separated by commas")
    matrices.add_argument("--target", default="cuda", help="such as cuda:sm_90")
    matrices.add_argument("--seconds", type=float, default=0.12, help="of each contender")
    matrices.add_argument("--json", type=Path, default=None, help="file for what was measured")
    replay = commands.add_parser("replay", help="searches of the suite once more, told what was recorded")
    replay.add_argument("--recording", type=Path, default=None, help="file of what they were told")
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", choices=SUITES, default="all", help="all: all but the operators")
    parser.add_argument("--kernels", type=_names, default=(), help="cases or problems, separated by commas")
    parser.add_argument("--target", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=None, help="of every contender; default: all processors")
    parser.add_argument("--rounds", type=int, default=5, help="quiet rounds of turns")
    parser.add_argument("--seconds", type=float, default=0.2, help="of a round of one contender")
    parser.add_argument(
        "--arrays",
        choices=("numpy", "torch"),
        default=None,
        help="whose arrays ours works on; default: NumPy's, on a GPU PyTorch's where it is installed",
    )
    parser.add_argument("--options", type=Path, default=None, help="file of tuned options")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _compiled(text: str) -> tuple[str, ...]:
    names = _names(text)
    unknown = [name for name in names if name not in ("inductor", "ours")]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"contenders are inductor and ours, got {text!r}")
    return names


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(int(name) for name in _names(text) if name.isdecimal())
    if len(counts) < len(_names(text)) or not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers of threads from 1 on, got {text!r}")
    return counts
