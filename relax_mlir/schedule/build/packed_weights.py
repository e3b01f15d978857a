"""Packed weights: the panels that matmul kernels read.

    weights[n, k]  ->  packed[ceil(n / columns), k, columns]
    packed[p, k, j] = weights[p * columns + j, k]

or, for kernels that multiply groups of g elements along k (pairs of bf16, 8-bit integers),

    weights[n, k]  ->  packed[ceil(n / columns), ceil(k / g), columns, g]
    packed[p, k, j, i] = weights[p * columns + j, g * k + i]

Rows and k are padded with zeros. 8-bit integers may be biased by 128: their top bit is flipped.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import TensorType
from relax_mlir.legalize.kernel import (
    PARALLEL,
    KernelBuilder,
    affine_map,
    dim,
    generic,
    index,
    scalar,
)
from relax_mlir.symbolic import as_expr

LAYOUTS = ("nk", "kn")
TOP_BIT = -128


@dataclass(frozen=True)
class Groups:
    """How many elements along k are contiguous, and whether their top bits are flipped."""

    size: int = 1
    is_biased: bool = False


ALONE = Groups()
PAIRS = Groups(2)


def packed_type(
    weights: TensorType, columns: int, layout: str = "nk", groups: Groups = ALONE
) -> TensorType:
    """The type of packed weights, from that of weights [n, k], or [k, n] by `layout`."""
    assert weights.dims is not None
    n, k = (weights.dims[layout.index(letter)] for letter in "nk")
    assert n is not None
    panels = (n + (columns - 1)) // columns
    size = groups.size
    if size > 1:
        assert k is not None
        count = (k + (size - 1)) // size
        return TensorType((panels, count, as_expr(columns), as_expr(size)), weights.element)
    return TensorType((panels, k, as_expr(columns)), weights.element)


def panel_element(
    packed: ir.Value, row: ir.Value, k: ir.Value, columns: int, groups: Groups
) -> ir.Value:
    """The element (row, k) of weights[n, k], read from a tensor of `packed_type`."""
    width = index(columns)
    panel = arith.DivUIOp(row, width).result
    column = arith.RemUIOp(row, width).result
    if groups.size == 1:
        return tensor.ExtractOp(packed, [panel, k, column]).result
    size = index(groups.size)
    group, position = arith.DivUIOp(k, size).result, arith.RemUIOp(k, size).result
    return biased(tensor.ExtractOp(packed, [panel, group, column, position]).result, groups)


def biased(element: ir.Value, groups: Groups) -> ir.Value:
    """An element as it is packed, from its value, or the other way round: flips the top bit."""
    if not groups.is_biased:
        return element
    return arith.XOrIOp(element, scalar(element.type, TOP_BIT)).result


def pack_weights_kernel(
    name: str,
    weights: TensorType,
    columns: int,
    block: ir.Block,
    layout: str = "nk",
    groups: Groups = ALONE,
) -> func.FuncOp:
    """Adds the tensor program that packs weights to `block`, the body of a module.

    It takes the weights, [n, k] or [k, n] by `layout`, and fills a tensor of `packed_type`.
    """
    result_type = packed_type(weights, columns, layout, groups)
    kernel = KernelBuilder(name, [weights], [result_type], block)
    rank = 4 if groups.size > 1 else 3
    with kernel.insertion_point:
        source, out = kernel.ins[0], kernel.outs[0]
        rows, depth = (dim(source, layout.index(letter)) for letter in "nk")

        def element(_: ir.Value) -> ir.Value:
            panel, k, column = (linalg.IndexOp(i).result for i in range(3))
            if groups.size > 1:
                first = arith.MulIOp(k, index(groups.size)).result
                k = arith.AddIOp(first, linalg.IndexOp(3).result).result
            first = arith.MulIOp(panel, index(columns)).result
            row = arith.AddIOp(first, column).result
            inside, row = _inside(row, rows)
            if groups.size > 1:
                is_depth, k = _inside(k, depth)
                inside = arith.AndIOp(inside, is_depth).result
            at = {"n": row, "k": k}
            value = tensor.ExtractOp(source, [at[letter] for letter in layout]).result
            zero = scalar(weights.element, 0)
            return arith.SelectOp(inside, biased(value, groups), zero).result

        result = generic([], [out], [affine_map(rank, range(rank))], [PARALLEL] * rank, element)
        return kernel.finish(*result)


def _inside(position: ir.Value, count: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether a position is below `count`, and the position clamped to the last one."""
    inside = arith.CmpIOp(arith.CmpIPredicate.ult, position, count).result
    last = arith.SubIOp(count, index(1)).result
    return inside, arith.MinUIOp(position, last).result
