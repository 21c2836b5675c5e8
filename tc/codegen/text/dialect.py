"""The differences between the languages of the C family.  The printer asks a dialect and knows no target by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final

from tc.base.faults import MISALIGNED
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.codegen.text.fragment import Template
from tc.codegen.text.functions import C_LIBRARY, CUDA_LIBRARY, OPENCL_LIBRARY, Library
from tc.codegen.text.numerics import OF_C, OF_CUDA
from tc.codegen.text.streams import EMULATED, StreamWords
from tc.codegen.text.streams import OF_CUDA as OF_CUDA_STREAMS
from tc.codegen.text.wgmma import COLUMNS, HALVES, function


@frozen
class GridWords:
    """How a language for machines that run grids speaks of them.

    ``kernel``: what stands before a kernel with ``{threads}`` threads, ``{x}``, ``{y}`` and ``{z}`` of them along the
    dimensions, of which ``{resident}`` blocks run on a multiprocessor at a time.  ``block``, ``thread``: the number of
    this one along ``{axis}``, which is dimension ``{number}``.  ``shared``: the declaration of an
    array ``{name}`` of ``{count}`` elements of a ``{type}`` that the threads of a block share, which begins at a
    multiple of ``{alignment}`` bytes; ``dynamic_shared``: of memory whose size the launch gives, where there is such.
    ``global_memory``: the qualifier of pointers to tensors.
    ``piece``: the declaration of an array of a thread, which wide accesses fill.  ``from_lowest``: pointers come in at
    the lowest address of a tensor, and not at the element whose subscripts are 0.
    """

    kernel: str
    block: str
    thread: str
    shared: str
    piece: str
    dynamic_shared: str | None = None
    global_memory: str = ""
    from_lowest: bool = False


@frozen
class MatrixWords:
    """How a language speaks of matrix instructions, which the lanes of a warp run together.

    ``rows``, ``columns``: the statements that fill ``{count}`` registers from ``{to}`` on with matrices of eight by
    eight elements of two bytes; ``{source}``: the row of one of them that this lane knows.  The two elements in a
    register are neighbours in a row, or in a column (PTX: ``ldmatrix``).  ``multiply``: by PTX's names for the types of
    operands, the one that adds to the sums ``{c0}`` to ``{c3}`` the products of what lanes hold in ``{left}`` and
    ``{right}`` (``mma.sync``).  ``{number}``: of the exchange in the kernel.
    """

    rows: Template
    columns: Template
    multiply: Mapping[tuple[str, str], Template]
    groups: GroupWords


@frozen
class GroupWords:
    """How a language speaks of the matrix instructions of four warps (PTX: ``wgmma``).

    ``begin``: the statement behind which they may change sums; ``commit``: the one behind all of a group; ``end``: the
    one behind which they have ended.
    ``matrix``: the expression that describes an operand from ``{first}`` on, with ``{stride}`` bytes from eight rows to
    the next ones, and ``{leading}`` from one panel to the next.  ``multiply``: by columns and PTX's name for the type
    of operands, the statement that adds to sums of two rows, from ``{upper}`` and ``{lower}`` on, the products of the
    operands ``{left}`` and ``{right}``; whether each of these is ``{turned}``.  ``fence``: the statement behind which
    what the thread has written is seen.  ``{number}``: of the exchange in the kernel.  ``streams``: of tiles.
    """

    begin: Template
    commit: Template
    end: Template
    matrix: Template
    multiply: Mapping[tuple[int, str], Template]
    fence: Template
    streams: StreamWords


@frozen
class Dialect:
    """One member of the C family.

    ``values``: the type that holds a value while computing; ``storage``: the type of an element in memory.
    ``restrict``: the qualifier of pointers that nothing else aliases.
    ``routine``: what stands before the definition of a function that must not be inlined.
    ``vector``: the line before a loop whose iterations may run in lanes; ``vector_lanes``: what is added to it for a
    number of ``{lanes}``, and ``vector_reduction`` for a variable whose partial results lanes may keep
    (``{operator}``, ``{variable}``).  ``unroll``: the line before a
    loop to be unrolled (``{count}``).  ``scalar``: the statement inside a loop whose iterations must not run in lanes.
    ``prefetch``: the statement that asks for memory ``{bytes}`` past the beginning of ``{tensor}``, wherever that is;
    ``prefetch_later``: the same for what does not have to be in the first cache, ``prefetch_to_store`` for what will be
    written.
    None where the language has no such thing.
    ``report``: the statement that hands on the fault ``{faulted}``.  ``barrier``: the one at which the threads of a
    block wait for each other, number ``{number}`` of the kernel.  ``shared``: the memory that they share.

    ``async_copy``: the statement that starts an asynchronous copy of ``{bytes}`` from ``{source}`` to ``{to}`` (PTX:
    ``cp.async``); ``commit_and_wait``: the one that commits the copies since the last one as a group, and waits for all
    groups but the last ``{pending}`` (``cp.async.commit_group``, ``cp.async.wait_group``).  ``pieces``: by bytes, the
    statement of a vector copy of so many, from ``{source}`` to ``{to}``, both aligned to them; ``pieces_in``,
    ``pieces_out``: of those from memory into an array of a thread, and back.  ``piece_in_versions``: that in functions
    that have a version for tensors that are not aligned (``{ahead}``: whether it is asynchronous);
    ``store_in_versions``: that of what a thread has in an array of its own (``{aligned}``: the name of what says
    whether the target is aligned, or ``true``).

    ``exchange``: the warp shuffle (XOR with ``{distance}``) that declares ``{other}`` of ``{type}`` as the ``{value}``
    of the partner lane; ``{number}`` of the kernel.

    ``kept``: the statement behind which compilers take ``{value}`` as it is, and compute no part of it elsewhere;
    ``{letter}``: of its type.  ``in_memory``: the statement that forces ``{array}`` out of registers into memory.
    ``matrices``: its matrix instructions, if it has some.

    ``library``: the functions that it brings; ``prelude``: the header with helpers of its own.  ``extremes``: the
    functions for the least and the greatest of two indices, where it brings such.

    ``grids``: of machines that run the blocks and threads of a kernel.
    ``wraps``: signed integers that overflow wrap around.  ``watches``: every access is checked, and faults are
    reported.  ``narrow``: iterators and offsets have 32 bits.  ``rotated_loops``: a loop with barriers that is known to
    have iterations is printed as ``do ... while``, its condition after the body.
    ``masks``: remainders by powers of two, of what is not negative, are masks: compilers do not see that of the numbers
    of loops over tiles.
    """

    values: Mapping[ScalarType, str]
    storage: Mapping[ScalarType, str]
    restrict: str
    routine: str
    vector: str | None
    vector_lanes: Template | None
    vector_reduction: Template | None
    unroll: str | None
    scalar: str | None
    prefetch: Template | None
    prefetch_later: Template | None
    prefetch_to_store: Template | None
    report: Template
    barrier: Template
    shared: Template
    async_copy: Template | None = None
    commit_and_wait: Template | None = None
    pieces: Mapping[int, Template] = field(default_factory=lambda: MappingProxyType({}))
    pieces_in: Mapping[int, Template] | None = None
    pieces_out: Mapping[int, Template] | None = None
    piece_in_versions: Template | None = None
    store_in_versions: Template | None = None
    exchange: Template | None = None
    kept: Template | None = None
    in_memory: Template | None = None
    matrices: MatrixWords | None = None
    library: Library = C_LIBRARY
    prelude: str | None = None
    extremes: tuple[str, str] | None = None
    grids: GridWords | None = None
    wraps: bool = True
    watches: bool = False
    narrow: bool = False
    rotated_loops: bool = False
    masks: bool = False

    @property
    def global_memory(self) -> str:
        """The qualifier of pointers to tensors."""
        return self.grids.global_memory if self.grids else ""

    @property
    def index_type(self) -> ScalarType:
        """Of iterators and element offsets."""
        return ScalarType.INT32 if self.narrow else ScalarType.INT64

    @property
    def index(self) -> str:
        """The name of that type."""
        return self.values[self.index_type]


_EXACT_INTEGERS: Final = {type: f"{type.value}_t" for type in ScalarType if type.is_integer}
_C_VALUES: Final = {
    **_EXACT_INTEGERS,
    ScalarType.BOOL: "bool",
    **{type: "float" for type in ScalarType if type.is_half},
    ScalarType.FLOAT32: "float",
    ScalarType.FLOAT64: "double",
}


def _stored(values: Mapping[ScalarType, str]) -> Mapping[ScalarType, str]:
    """The types of elements in memory, of a language with these types of values."""
    halves = {type: f"tc_{type}" for type in ScalarType if type.is_half}
    return {**values, ScalarType.BOOL: values[ScalarType.UINT8], **halves}


C: Final = Dialect(
    values=_C_VALUES,
    storage=_stored(_C_VALUES),
    restrict="restrict",
    routine="static __attribute__((noinline))",
    vector="#pragma omp simd",
    vector_lanes=Template("simdlen({lanes})"),
    vector_reduction=Template("reduction({operator}:{variable})"),
    unroll="#pragma GCC unroll {count}",
    scalar='__asm__ volatile("");',
    prefetch=Template("__builtin_prefetch((const void *)((uintptr_t){tensor} + (uintptr_t)({bytes})));"),
    prefetch_later=Template("__builtin_prefetch((const void *)((uintptr_t){tensor} + (uintptr_t)({bytes})), 0, 2);"),
    prefetch_to_store=Template("__builtin_prefetch((const void *)((uintptr_t){tensor} + (uintptr_t)({bytes})), 1);"),
    report=Template("__atomic_store_n(fault, {faulted}, __ATOMIC_RELAXED);", frozenset({"fault"})),
    barrier=Template("tc_barrier(team, {number});", frozenset({"tc_barrier", "team"})),
    shared=Template("team->shared", frozenset({"team"})),
    prelude=OF_C,
)

# Without what compilers of processors are told about vectors and caches.
_PLAIN: Final = replace(
    C,
    vector=None,
    vector_lanes=None,
    vector_reduction=None,
    scalar=None,
    prefetch=None,
    prefetch_later=None,
    prefetch_to_store=None,
)

# What looks at the addresses of vector copies.
_ALIGNED: Final = {
    bytes: Template(
        f"tc_require_aligned({{to}}, {{source}}, {bytes}, &faulted, {MISALIGNED});",
        frozenset({"tc_require_aligned", "faulted"}),
    )
    for bytes in (4, 8, 16)
}
# By PTX's names for the types of both operands.
_PRODUCTS: Final = {
    ("f16", "f16"): "float16",
    ("bf16", "bf16"): "bfloat16",
    ("tf32", "tf32"): "tf32",
    ("3xtf32", "3xtf32"): "3xtf32",
    **{(left, right): f"{left}_{right}" for left in ("s8", "u8") for right in ("s8", "u8")},
}


# Of instructions of four warps.
_GROUP_OPERANDS: Final = "{upper}, {lower}, {left}, {right}"


def _load_matrices(turned: int) -> Template:
    return Template(
        f"tc_require_aligned({{source}}, {{source}}, 16, &faulted, {MISALIGNED}); "
        f"tc_load_matrices(team, {{number}}, {{to}}, {{source}}, {{count}}, {turned});",
        frozenset({"tc_require_aligned", "faulted", "tc_load_matrices", "team"}),
    )


# Kernels of a GPU on the processor, for tests.
EMULATOR: Final = replace(
    _PLAIN,
    async_copy=Template("tc_copy_later(team, {to}, {source}, {bytes});", frozenset({"tc_copy_later", "team"})),
    commit_and_wait=Template("tc_arrive(team, {pending});", frozenset({"tc_arrive", "team"})),
    exchange=Template(
        "{type} {other} = {value}; tc_exchange(team, {number}, &{other}, sizeof {other}, {distance});",
        frozenset({"tc_exchange", "team"}),
    ),
    pieces=_ALIGNED,
    pieces_in=_ALIGNED,
    pieces_out=_ALIGNED,
    matrices=MatrixWords(
        rows=_load_matrices(turned=0),
        columns=_load_matrices(turned=1),
        multiply={
            operands: Template(
                f"tc_multiply_{name}(team, {{number}}, {{c0}}, {{c1}}, {{c2}}, {{c3}}, {{left}}, {{right}});",
                frozenset({f"tc_multiply_{name}", "team"}),
            )
            for operands, name in _PRODUCTS.items()
        },
        groups=GroupWords(
            begin=Template("tc_begin_products(team);", frozenset({"tc_begin_products", "team"})),
            commit=Template("tc_commit_products(team);", frozenset({"tc_commit_products", "team"})),
            end=Template("tc_end_products(team);", frozenset({"tc_end_products", "team"})),
            matrix=Template("tc_matrix(team, {first}, {stride}, {leading})", frozenset({"tc_matrix", "team"})),
            multiply={
                (n, type): Template(
                    f"tc_multiply_columns_{type}(team, {{number}}, {n}, {_GROUP_OPERANDS}, {{turned}});",
                    frozenset({f"tc_multiply_columns_{type}", "team"}),
                )
                for n in COLUMNS
                for type in HALVES
            },
            fence=Template("tc_fence(team);", frozenset({"tc_fence", "team"})),
            streams=EMULATED,
        ),
    ),
    watches=True,
)

_OF_CUDA: Final = {
    **_C_VALUES,
    ScalarType.INT8: "signed char",
    ScalarType.INT16: "short",
    ScalarType.INT32: "int",
    ScalarType.INT64: "long long",
    ScalarType.UINT8: "unsigned char",
    ScalarType.UINT16: "unsigned short",
    ScalarType.UINT32: "unsigned",
    ScalarType.UINT64: "unsigned long long",
}
_OF_OPENCL: Final = {
    **_C_VALUES,
    ScalarType.INT8: "char",
    ScalarType.INT16: "short",
    ScalarType.INT32: "int",
    ScalarType.INT64: "long",
    ScalarType.UINT8: "uchar",
    ScalarType.UINT16: "ushort",
    ScalarType.UINT32: "uint",
    ScalarType.UINT64: "ulong",
}


def _pieces(word: str, to: str = "", source: str = "") -> Mapping[int, Template]:
    """Vector copies in a language, whose unsigned integers of 4 bytes are called so; with qualifiers of addresses."""
    types = {4: word, 8: "uint2", 16: "uint4"}
    return {
        bytes: Template(f"*({to}{type} *){{to}} = *({source}const {type} *){{source}};")
        for bytes, type in types.items()
    }


CUDA: Final = replace(
    _PLAIN,
    values=_OF_CUDA,
    storage=_stored(_OF_CUDA),
    restrict="__restrict__",
    unroll="#pragma unroll {count}",
    report=Template("*fault = {faulted};", frozenset({"fault"})),
    barrier=Template("__syncthreads();"),
    shared=Template("shared", frozenset({"shared"})),
    async_copy=Template("tc_copy_ahead<{bytes}>({to}, {source});", frozenset({"tc_copy_ahead"})),
    commit_and_wait=Template("tc_arrived<{pending}>();", frozenset({"tc_arrived"})),
    exchange=Template("const {type} {other} = __shfl_xor_sync(0xffffffffu, {value}, {distance});"),
    matrices=MatrixWords(
        rows=Template("tc_load_rows<{count}>({to}, {source});", frozenset({"tc_load_rows"})),
        columns=Template("tc_load_columns<{count}>({to}, {source});", frozenset({"tc_load_columns"})),
        multiply={
            operands: Template(
                f"tc_multiply_{name}({{c0}}, {{c1}}, {{c2}}, {{c3}}, {{left}}, {{right}});",
                frozenset({f"tc_multiply_{name}"}),
            )
            for operands, name in _PRODUCTS.items()
        },
        groups=GroupWords(
            begin=Template("tc_begin_products();", frozenset({"tc_begin_products"})),
            commit=Template("tc_commit_products();", frozenset({"tc_commit_products"})),
            end=Template("tc_end_products();", frozenset({"tc_end_products"})),
            matrix=Template("tc_matrix({first}, {stride}, {leading})", frozenset({"tc_matrix"})),
            multiply={
                (n, type): Template(
                    f"{function(n, type)}<{{turned}}>({_GROUP_OPERANDS});",
                    frozenset({function(n, type)}),
                )
                for n in COLUMNS
                for type in HALVES
            },
            fence=Template("tc_fence();", frozenset({"tc_fence"})),
            streams=OF_CUDA_STREAMS,
        ),
    ),
    masks=True,
    kept=Template('asm("" : "+{letter}"({value}));'),
    in_memory=Template('asm volatile("" :: "l"({array}) : "memory");'),
    pieces=_pieces("unsigned"),
    pieces_in=_pieces("unsigned"),
    pieces_out=_pieces("unsigned"),
    piece_in_versions=Template(
        "tc_copy_piece<aligned, {ahead}, {bytes}>({to}, {source});", frozenset({"tc_copy_piece"})
    ),
    store_in_versions=Template("tc_store_piece<{aligned}, {bytes}>({to}, {source});", frozenset({"tc_store_piece"})),
    library=CUDA_LIBRARY,
    prelude=OF_CUDA,
    extremes=("min", "max"),
    grids=GridWords(
        kernel='extern "C" __global__ __launch_bounds__({threads}, {resident})',
        block="blockIdx.{axis}",
        thread="threadIdx.{axis}",
        shared="__shared__ __align__({alignment}) {type} {name}[{count}];",
        piece="__align__(16) {type} {name}[{count}];",
        dynamic_shared="extern __shared__ __align__({alignment}) char shared[];",
    ),
    wraps=False,
)

OPENCL: Final = replace(
    CUDA,
    values=_OF_OPENCL,
    storage=_stored(_OF_OPENCL),
    restrict="restrict",
    library=OPENCL_LIBRARY,
    prelude="opencl.h",
    async_copy=None,
    commit_and_wait=None,
    exchange=None,
    kept=None,
    in_memory=None,
    piece_in_versions=None,
    matrices=None,
    store_in_versions=None,
    # PoCL 3.0 mixes up what threads keep where it sees a condition around barriers that it cannot decide.
    rotated_loops=True,
    masks=False,
    barrier=Template("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
    pieces=_pieces("uint", "__local ", "__global "),
    pieces_in=_pieces("uint", "", "__global "),
    pieces_out=_pieces("uint", "__global ", ""),
    grids=GridWords(
        kernel="__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))",
        block="get_group_id({number})",
        thread="get_local_id({number})",
        shared="__local {type} {name}[{count}] __attribute__((aligned({alignment})));",
        piece="{type} {name}[{count}] __attribute__((aligned(16)));",
        global_memory="__global ",
        from_lowest=True,
    ),
)
