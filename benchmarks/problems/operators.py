"""Everyday operators, at sizes for a few cores: products, convolutions, norms, losses and what else networks need.

The classes are those of KernelBench's first level (arXiv 2502.10517), and layers of ResNet, MobileNet and U-Net.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.problems.case import Case, Suite
from benchmarks.problems.problem import Problem, Sizes

# Names of definitions by file, and the sizes of the cases of each.
_CASES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "products": {
            "matmul": (
                "M=512,K=512,N=512",
                "M=64,K=8192,N=64",
                "M=8192,K=64,N=64",
                "M=1024,K=16,N=1024",
                "M=511,K=383,N=257",
                "M=8,K=2048,N=2048",
            ),
            "matmul_left": ("M=512,K=512,N=512",),
            "matmul_both": ("M=512,K=512,N=512",),
            "vector_matrix": ("K=1024,N=16384",),
            "matrix_vector": ("M=2048,K=2048", "M=256,K=16384"),
            "outer": ("M=1024,N=1024",),
            "batched": ("B=64,M=96,K=128,N=80", "B=512,M=16,K=16,N=16"),
            "tensor_matrix": ("B=4,I=16,J=32,K=128,N=96",),
            "two_dimensions": ("M=128,I=32,J=32,N=128",),
            "diagonal": ("N=1024,M=1024",),
            "upper": ("N=512",),
            "linear": ("B=256,K=1024,N=512",),
            "linear_gelu": ("B=128,K=768,N=3072",),
            "norm_linear": ("B=256,K=768,N=768",),
            "gated": ("B=128,K=512,N=1024",),
        },
        "convolutions": {
            "convolution1d": ("N=16,C=64,L=512,F=64,K=3",),
            "convolution1d_strided": ("N=16,C=64,L=1024,F=64,K=3",),
            "convolution": ("N=8,C=32,H=34,W=34,F=32,KH=3,KW=3", "N=8,C=16,H=64,W=70,F=16,KH=1,KW=7"),
            "convolution_same": (
                "N=2,C=64,H=56,W=56,F=64",
                "N=2,C=128,H=28,W=28,F=128",
                "N=2,C=256,H=14,W=14,F=256",
                "N=2,C=512,H=7,W=7,F=512",
            ),
            "convolution_bias": ("N=1,C=32,H=128,W=128,F=32",),
            "convolution_halved": ("N=2,C=64,H=56,W=56,F=128",),
            "convolution_stem": ("N=2,C=3,H=224,W=224,F=64",),
            "convolution_dilated": ("N=4,C=32,H=64,W=64,F=32,KH=3,KW=3",),
            "pointwise": ("N=8,C=64,H=56,W=56,F=128", "N=4,C=256,H=14,W=14,F=512"),
            "pointwise_halved": ("N=4,C=128,H=28,W=28,F=256",),
            "pointwise_last": ("N=8,H=28,W=28,C=128,F=128",),
            "convolution_last": ("N=4,H=28,W=28,C=64,F=64",),
            "depthwise": ("N=4,C=32,H=112,W=112", "N=4,C=512,H=14,W=14"),
            "depthwise_halved": ("N=4,C=64,H=112,W=112",),
            "separable": ("N=4,C=128,H=28,W=28,F=128",),
            "grouped": ("N=4,G=32,C=4,H=28,W=28,F=4",),
            "convolution3d": ("N=2,C=8,D=18,H=34,W=34,F=16,KD=3,KH=3,KW=3",),
            "transposed1d": ("N=16,C=64,L=512,F=32,K=3",),
            "transposed": ("N=8,C=32,H=32,W=32,F=32,KH=3,KW=3",),
            "transposed_guarded": ("N=8,C=32,H=32,W=32,F=32,KH=3,KW=3",),
            "transposed_doubled": ("N=4,C=64,H=32,W=32,F=32",),
            "transposed_four": ("N=4,C=64,H=16,W=16,F=64",),
            "transposed3d": ("N=2,C=16,D=8,H=16,W=16,F=16,KD=3,KH=3,KW=3",),
        },
        "elementwise": dict.fromkeys(
            (
                *("relu", "leaky_relu", "sigmoid", "hyperbolic", "swish", "gelu", "gelu_tanh", "selu"),
                *("hard_sigmoid", "softplus", "softsign", "bias_residual", "masked"),
            ),
            ("M=2048,N=1024",),
        ),
        "reductions": {
            "sum_all": ("M=2048,N=2048",),
            "sum_rows": ("M=2048,N=1024", "M=65536,N=10"),
            "sum_columns": ("M=2048,N=1024",),
            "sum_middle": ("B=16,M=256,N=256",),
            "mean_last": ("B=16,M=256,N=256",),
            "min_rows": ("M=2048,N=512",),
            "max_middle": ("B=16,M=256,N=256",),
            "product_rows": ("M=2048,N=512",),
            "argmax_rows": ("M=2048,N=512",),
            "argmin_columns": ("M=1024,N=1024",),
            "log_sum_exp": ("M=1024,N=1024",),
            "variance": ("M=2048,N=512",),
            "cumulative_product": ("M=1024,N=1024",),
            "reverse_cumulative": ("M=1024,N=1024",),
        },
        "norms": {
            "softmax_rows": ("M=64,N=16384", "M=8192,N=64"),
            "log_softmax_rows": ("M=1024,N=1000",),
            "softmax_channels": ("N=4,C=21,H=64,W=64",),
            "batch_norm": ("N=16,C=64,H=32,W=32",),
            "batch_norm_inference": ("N=16,C=64,H=32,W=32",),
            "instance_norm": ("N=16,C=64,H=32,W=32",),
            "rms_norm": ("M=1024,N=1024",),
            "rms_channels": ("N=16,C=64,H=32,W=32",),
            "frobenius": ("M=1024,N=1024",),
            "unit_l1": ("M=64,N=16384",),
            "unit_l2": ("M=1024,N=1024",),
        },
        "windows": {
            "max_pool1d": ("N=16,C=64,L=1024",),
            "max_pool": ("N=16,C=64,H=56,W=56",),
            "max_pool_padded": ("N=4,C=64,H=112,W=112",),
            "max_pool_dense": ("N=4,C=64,H=56,W=56",),
            "max_pool3d": ("N=4,C=16,D=33,H=33,W=33",),
            "average_pool1d": ("N=16,C=64,L=1024",),
            "average_pool": ("N=16,C=64,H=56,W=56",),
            "average_pool3d": ("N=4,C=16,D=32,H=32,W=32",),
            "average_global": ("N=32,C=512,H=7,W=7",),
        },
        "losses": {
            "squared_error": ("M=1024,N=1024",),
            "cross_entropy": ("M=1024,N=1000",),
            "huber": ("M=1024,N=1024",),
            "divergence": ("M=1024,N=512",),
            "triplet": ("M=1024,N=512",),
            "cosine": ("M=1024,N=512",),
            "hinge": ("N=1048576",),
        },
        "layouts": {
            "transpose": ("M=2048,N=1024",),
            "channels_last": ("N=16,C=64,H=32,W=32",),
            "heads": ("B=8,N=256,H=12,D=64",),
            "concatenate": ("M=1024,N=512,K=256",),
            "upsample": ("N=4,C=64,H=32,W=32",),
            "pixel_shuffle": ("N=4,C=16,H=64,W=64",),
            "pad": ("N=16,C=64,H=32,W=32",),
            "flip": ("M=1024,N=1024",),
            "embedding": ("V=30000,D=256,B=16,L=128",),
        },
        "attention": {
            "attention": ("B=16,N=256,M=256,D=64,E=64", "B=96,N=1,M=1024,D=64,E=64"),
            "attention_causal": ("B=16,N=256,D=64,E=64",),
        },
        "low_precision": {
            "matmul_int8": ("M=512,K=512,N=512", "M=1024,K=1024,N=1024"),
            "linear_uint8": ("M=256,K=768,N=768",),
            "matmul_bfloat16": ("M=512,K=512,N=512", "M=1024,K=1024,N=1024"),
            "linear_bfloat16": ("M=128,K=1024,N=1024",),
            "matmul_float16": ("M=512,K=512,N=512",),
            "gelu_bfloat16": ("M=2048,N=1024",),
            "softmax_float16": ("M=1024,N=1024",),
            "layer_norm_bfloat16": ("M=1024,N=1024",),
        },
    }
)


def _problem(file: str, name: str) -> Problem:
    file = f"operators/{file}"
    match name:
        case "cross_entropy":
            return Problem(name, classes={"t": "N"}, file=file)
        case "embedding":
            return Problem(name, indices={"index": "table"}, file=file)
        case _:
            return Problem(name, file=file)


def _sizes(text: str) -> Sizes:
    pairs = (part.split("=") for part in text.split(","))
    return {name: int(value) for name, value in pairs}


def _cases(file: str, name: str, texts: tuple[str, ...]) -> Iterator[Case]:
    """A case that is alone is called as its problem, others with their sizes."""
    problem = _problem(file, name)
    for sizes in map(_sizes, texts):
        values = "-".join(map(str, sizes.values()))
        yield Case(name if len(texts) == 1 else f"{name}-{values}", Suite.OPERATORS, problem, sizes, 1.0)


OPERATORS: Final = tuple(
    case for file, names in _CASES.items() for name, texts in names.items() for case in _cases(file, name, texts)
)
