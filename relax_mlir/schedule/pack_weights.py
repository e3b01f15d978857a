"""Weights in panels, the layout that matmul kernels read fastest.

    weights[n, k]  ->  packed[ceil(n / columns), k, columns]
    packed[p, k, j] = weights[p * columns + j, k]

or, for kernels that multiply pairs of bf16 numbers, k even,

    weights[n, k]  ->  packed[ceil(n / columns), k / 2, columns, 2]
    packed[p, k, j, i] = weights[p * columns + j, 2 * k + i]

What lies past the last row is zero. `panel_columns` is the width that a target's kernels take.
"""

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
from relax_mlir.schedule.cpu.gemm_kernel import Tiling
from relax_mlir.symbolic import as_expr
from relax_mlir.target import Target

LAYOUTS = ("nk", "kn")


def panel_columns(target: Target) -> int:
    """The columns of a panel that the matmul kernels of a target are made for."""
    return Tiling.of(target).columns


def packed_type(
    weights: TensorType, columns: int, layout: str = "nk", pairs: bool = False
) -> TensorType:
    """The type of packed weights, from that of weights [n, k], or [k, n] by `layout`."""
    n, k = (weights.dims[layout.index(letter)] for letter in "nk")
    panels = (n + (columns - 1)) // columns
    if pairs:
        return TensorType((panels, k // 2, as_expr(columns), as_expr(2)), weights.element)
    return TensorType((panels, k, as_expr(columns)), weights.element)


def panel_element(
    packed: ir.Value, row: ir.Value, k: ir.Value, columns: int, pairs: bool
) -> ir.Value:
    """The element of weights[n, k] at `row` and `k`, out of a tensor of `packed_type`."""
    width = index(columns)
    panel = arith.DivUIOp(row, width).result
    column = arith.RemUIOp(row, width).result
    if not pairs:
        return tensor.ExtractOp(packed, [panel, k, column]).result
    two = index(2)
    pair, half = arith.DivUIOp(k, two).result, arith.RemUIOp(k, two).result
    return tensor.ExtractOp(packed, [panel, pair, column, half]).result


def pack_weights_kernel(
    name: str,
    weights: TensorType,
    columns: int,
    block: ir.Block,
    layout: str = "nk",
    pairs: bool = False,
) -> func.FuncOp:
    """Adds the tensor program that packs weights to `block`, the body of a module.

    It takes the weights, [n, k] or [k, n] by `layout`, and fills a tensor of `packed_type`.
    """
    result_type = packed_type(weights, columns, layout, pairs)
    kernel = KernelBuilder(name, [weights], [result_type], block)
    rank = len(result_type.dims)
    with kernel.insertion_point:
        source, out = kernel.ins[0], kernel.outs[0]
        rows = dim(source, layout.index("n"))

        def element(_: ir.Value) -> ir.Value:
            panel, k, column = (linalg.IndexOp(i).result for i in range(3))
            if pairs:
                two = arith.MulIOp(k, index(2)).result
                k = arith.AddIOp(two, linalg.IndexOp(3).result).result
            first = arith.MulIOp(panel, index(columns)).result
            row = arith.AddIOp(first, column).result
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, row, rows).result
            last = arith.SubIOp(rows, index(1)).result
            row = arith.MinUIOp(row, last).result
            at = {"n": row, "k": k}
            value = tensor.ExtractOp(source, [at[letter] for letter in layout]).result
            return arith.SelectOp(inside, value, scalar(weights.element, 0)).result

        result = generic([], [out], [affine_map(rank, range(rank))], [PARALLEL] * rank, element)
        return kernel.finish(*result)
