"""Scops and loop trees of small programs, for the tests of the polyhedral core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from tc.grammar.parser import parse
from tc.language.lower.lower import lower_text
from tc.language.lower.specialize import specialize
from tc.language.program.program import Program
from tc.language.program.specialization import ArraySpec, Signature, Specialization
from tc.polyhedral.execution.execution import Execution
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.generate.leaves import leaves_of
from tc.polyhedral.generate.localize import localize_loops
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop, build_scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.processor_passes import PASSES, streamed_by
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.polyhedral.separate.separate_tiles import separate_tiles
from tc.targets.machine import GENERIC_GPU, CpuMachine, Machine, VectorUnit
from tc.targets.options import CpuOptions, Options

MACHINE = CpuMachine(VectorUnit(bytes=64, registers=32), cores=2, streams=True)


def machine_for(options: Options) -> Machine:
    """A machine that takes such options."""
    return MACHINE if isinstance(options, CpuOptions) else GENERIC_GPU


MATMUL = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
TRANSPOSED = "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
LAYERS = """
def layers(float(B,M) I, float(N,M) W1, float(N) B1, float(O,N) W2) -> (X, Y) {
  X(b,n) = B1(n)
  X(b,n) += I(b,m) * W1(n,m)
  X(b,n) = fmax(X(b,n), 0)
  Y(b,o) +=! X(b,n) * W2(o,n)
}
"""
SOFTMAX = """
def softmax(float(N,D) X) -> (O) {
  M(i) max=! X(i,j)
  E(i,j) = exp(X(i,j) - M(i))
  S(i) +=! E(i,j)
  O(i,j) = E(i,j) / S(i)
}
"""
CONVOLUTION = """
def conv(float(N,C,H,W) X, float(F,C,KH,KW) K, float(F) B) -> (O) {
  O(n,f,h,w) +=! X(n,c,h+p,w+q) * K(f,c,p,q)
  O(n,f,h,w) = O(n,f,h,w) + B(f)
}
"""
BLUR = """
def blur(float(N) X) -> (O) {
  T(i) = X(i) + X(i+1)
  O(i) = T(i) + T(i+1)
}
"""
TRIANGLE = "def triangle(float(N) X) -> (O) { O(i) +=! X(j) where i in 0:N, j in 0:i+1 }"
GRADIENT = "def gradient(float(M) dy, float(K) w) -> (dx) { dx(r) +=! dy(r-k) * w(k) where r in 0:M+K-1, r-k in 0:M }"
PRODUCT = "def product(float(N) A, float(M) B) -> (C) { C(i+j) +=! A(i) * B(j) }"
TURNS = "def turns(float(N) A) -> (C) { C(i%3) max=! A(i) }"

SHAPES: Mapping[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "matmul": (MATMUL, ((5, 4), (4, 7))),
    "transposed": (TRANSPOSED, ((5, 4), (3, 4))),
    "layers": (LAYERS, ((3, 4), (2, 4), (2,), (3, 2))),
    "softmax": (SOFTMAX, ((3, 5),)),
    "convolution": (CONVOLUTION, ((1, 2, 4, 5), (2, 2, 2, 3), (2,))),
    "blur": (BLUR, ((9,),)),
    "triangle": (TRIANGLE, ((6,),)),
    "gradient": (GRADIENT, ((5,), (3,))),
    "product": (PRODUCT, ((5,), (3,))),
    "turns": (TURNS, ((7,),)),
}


def program_of(text: str) -> Program:
    """The single definition of a text."""
    (program,) = lower_text(parse(text), text).values()
    return program


def specialized(text: str, shapes: tuple[tuple[int, ...], ...]) -> Specialization:
    """The single definition of a text at contiguous arguments of these shapes."""
    program = program_of(text)
    specs = (
        (name, ArraySpec(shape, program.tensor(name).type))
        for name, shape in zip(program.arguments, shapes, strict=True)
    )
    return specialize(program, Signature(tuple(specs)))


def scop_of(name: str, context: isl.Context) -> Scop:
    """The scop of one of ``SHAPES``."""
    return build_scop(specialized(*SHAPES[name]), context)


@dataclass(frozen=True)
class Candidate:
    """What is proven: statements and copies, the tree that orders them, and the loops that were generated."""

    scop: Scop
    tree: ScheduleTree
    loops: LoopTree

    def execution(self, loops: LoopTree) -> Execution:
        """How these loops run the statements."""
        dimensions = {s.name: s.domain.dim(isl.dim_type.set) for s in self.scop.statements}
        return loop_execution(loops, dimensions, self.scop.context)


def candidate(
    specialization: Specialization, options: CpuOptions, machine: CpuMachine, context: isl.Context
) -> Candidate:
    """What all passes make of a program."""
    scop = build_scop(specialization, context)
    tree = schedule_scop(scop, options.schedule.fusion)
    for _, run in PASSES:
        tree, scop = run(tree, scop, options, machine)
    buffers = [promotion.buffer for promotion in scop.promotions]
    leaves = leaves_of(scop, streamed_by(scop, options, machine))
    loops = localize_loops(generate_loops(tree, context, buffers, leaves=leaves), scop)
    return Candidate(scop, tree, separate_tiles(loops, context))
