"""``tc-export``: writes models as C or CUDA, which runs without Python."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tc.base.errors import OptionsError, TCError
from tc.base.generator import RELEASE
from tc.commands.contents.terminal import printable, shortened
from tc.commands.warned import warned

_HELP: Final = """\
Writes a model as a folder of C, or of C and CUDA, with its weights and one function, which runs without Python.

  tc-export model.onnx resnet50                              # shapes as the model declares them
  tc-export model.onnx resnet50 --shape data=1,3,224,224     # where they are open
  tc-export frozen.pb head --shape 64,784 --target cuda:sm_90

Models are ONNX files and GraphDefs of TensorFlow.  Kernels are those that the cache knows as the best (TC_CACHE), and
the default ones elsewhere.  Kernels of a cache, without a model: tc-cache export --sources.
"""
_EPILOG: Final = """\
exit status:
  0  done                        2  it cannot be done, and the message says why
"""
_EXTENT: Final = re.compile(r"[0-9]{1,18}")
# Of a message.
_LONGEST: Final = 4000


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    given = _parser().parse_args(arguments)
    try:
        with warned(lambda line: print(f"tc-export: {line}", file=sys.stderr)):
            _export(given)
    except TCError as error:
        print(f"tc-export: {shortened(str(error), _LONGEST)}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("tc-export", description=_HELP, epilog=_EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"tc-export {RELEASE}")
    parser.add_argument("model", type=Path, help="an ONNX file, or a GraphDef (.pb, .pbtxt)")
    parser.add_argument("folder", type=Path, help="new, empty, or an earlier export, which is replaced")
    shapes = "the shape of an input, by its name, or of the next one; may be repeated"
    parser.add_argument("--shape", action="append", default=[], metavar="x=1,3,224,224", help=shapes)
    parser.add_argument("--target", help="cpu (default), cpu:x86-64-v3, cuda:sm_90, ...")
    return parser


def _export(given: argparse.Namespace) -> None:
    # Whoever asks for help needs no models.
    from tc.graph.load import load

    shapes = [_shape(text) for text in given.shape]
    in_order = [shape for name, shape in shapes if name is None]
    named = {name: shape for name, shape in shapes if name is not None}
    if len(in_order) + len(named) < len(shapes):
        raise OptionsError("an input has two shapes; give each --shape once")
    load(given.model, target=given.target).export(given.folder, *in_order, **named)
    print(f"wrote {printable(str(given.folder))}; see README.md there")


def _shape(text: str) -> tuple[str | None, tuple[int, ...]]:
    """``x=1,3`` or ``1,3``; names may hold anything."""
    name, equal, extents = text.rpartition("=")
    words = [word.strip() for word in extents.split(",")] if extents.strip() else []
    if not all(map(_EXTENT.fullmatch, words)):
        raise OptionsError(f"shapes are written as x=1,3,224,224, got {text!r}")
    return name if equal else None, tuple(map(int, words))


if __name__ == "__main__":
    sys.exit(main())
