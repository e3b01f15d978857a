"""From an exported program to a module: decomposed, but for operators that are imported whole."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ModelError
from relax_mlir.source import Imported

from . import operators as _operators  # noqa: F401  # registers them
from .importer import import_program
from .registry import Function, find
from .rewritten import CUSTOM, REWRITTEN

NONE: Mapping[str, Function] = MappingProxyType({})

WHOLE = (
    "linear",
    "scaled_dot_product_attention",
    "layer_norm",
    "group_norm",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "softmax.int",
    "log_softmax.int",
    "silu",
    "gelu",
    "embedding",
    "matmul",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "max_pool2d",
    "avg_pool2d",
    "hardswish",
    "hardsigmoid",
    "mish",
    "leaky_relu",
    "elu",
    "softplus",
    "one_hot",
    "pad",
    "repeat_interleave.self_int",
    "upsample_nearest2d.vec",
    "upsample_bilinear2d.vec",
    "rms_norm",
    "einsum",
    "lstm.input",
    "gru.input",
)
"""Operators that are imported whole, since schedules know more of them than of their parts."""


def from_exported_program(
    program: torch.export.ExportedProgram,
    symbols: Mapping[str, str] | None = None,
    facts: Sequence[str] = (),
    operators: Mapping[str, Function] = NONE,
) -> Imported:
    """Imports a program of `torch.export.export`.

    `symbols` gives PyTorch's symbols, such as s0, other names; ranges of dims become facts, next to
    `facts`, and are checked at each call. `operators` are functions for custom operators, such as
    "mylib::op", or others for known ones: they take a `Call` and the operands.

    Buffers that the program changes are inputs, after the others, which calls update in place and
    return as well; `state` has the values that they begin with. So are inputs that it changes.

    Complex arguments and results have both parts along a last dim, as `view_as_real` has them;
    functions for operators take them as `relax_mlir.frontends.complex.Pair`.

    Raises ModelError, which names the node, for a program that is not supported.
    """
    return from_decomposed(decomposed(program), symbols or {}, facts, operators)


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program in operators of Core ATen, and those that are imported whole."""
    try:
        return program.run_decompositions(decompositions())
    except Exception as error:  # whatever PyTorch raises
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"is a program that PyTorch does not decompose: {reason}") from error


def from_decomposed(
    program: torch.export.ExportedProgram,
    symbols: Mapping[str, str],
    facts: Sequence[str],
    operators: Mapping[str, Function],
) -> Imported:
    """Imports a program that was decomposed."""
    with make_context(), ir.Location.unknown():
        return import_program(program, symbols, facts, operators)


def decompositions() -> dict:
    """PyTorch's decompositions to Core ATen, but for operators that are imported whole."""
    table = torch.export.default_decompositions()
    for name in WHOLE:
        packet, _, overload = name.partition(".")
        operator = getattr(torch.ops.aten, packet, None)
        if operator is not None and find(f"aten::{name}") is not None:
            table.pop(getattr(operator, overload or "default"), None)
    table.update(REWRITTEN)
    for name, function in CUSTOM.items():
        custom = getattr(torch.ops.torch_nn, name, None)
        if custom is not None:
            table[custom.default] = function
    return table
