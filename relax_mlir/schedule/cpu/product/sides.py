"""The sides of a contraction as matrices in memory, and its epilogue."""

from collections.abc import Callable, Sequence

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import arith, ir
from relax_mlir.program.computed_product import ComputedProduct
from relax_mlir.program.contraction import Contraction, Factor
from relax_mlir.program.program import (
    Stage,
)
from relax_mlir.schedule.build.affine import evaluate, resolve
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Lane, Uniform, Varying, to_vector, value_of, vector_type
from relax_mlir.schedule.build.loops import Index, add, mul
from relax_mlir.schedule.build.product_parts import computed_factor
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs

from .operands import Side
from .packing import Matrix

Convert = Callable[[ir.Value], ir.Value]
"""Turns a vector of loaded elements into factors."""


def matrix_of(
    kernel: Kernel,
    blocking: Blocking,
    contraction: Contraction | ComputedProduct,
    factor: Factor,
    rows: Sequence[int],
    shape: Sequence[Index],
    convert: Convert | None,
) -> Side:
    """One side of the product, as a function of the index of the batch.

    `convert` turns loaded elements into factors; None where they are that already.
    """
    view = kernel.view(factor.tensor)
    if view is None:
        raise Refusal("a side has gaps in memory")
    row: Index = 0
    if rows:
        position = factor.position(rows[-1])
        assert position is not None, "a loop of rows is an index itself"
        row = view.strides[position]
    along_k = [i for i, e in enumerate(factor.indices) if contraction.depth in dims_of(e)]
    depth = view.strides[along_k[0]]
    if isinstance(contraction, Contraction) and contraction.packed and factor is contraction.rhs:
        row, depth = view.strides[0], view.strides[1]
    elif not any(isinstance(stride, int) and stride == 1 for stride in (row, depth)):
        raise Refusal("neither rows nor depth of a side are contiguous in memory")
    extent = mul(1, *(shape[loop] for loop in rows))
    length = mul(shape[contraction.depth], 2 if contraction.counts_pairs else 1)

    def matrix(batch: Sequence[Index]) -> Matrix:
        lanes: list[Lane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, batch, strict=True):
            lanes[loop] = Uniform(index)
        offset = view.offset
        for expression, stride in zip(factor.indices, view.strides, strict=True):
            at = resolve(evaluate(expression, lanes, blocking.lanes), blocking.lanes)
            offset = add(offset, mul(value_of(at), stride))
        return Matrix(view.base, offset, row, depth, extent, length, convert)

    return matrix


def convert_of(kernel: Kernel, stage: Stage, factor: Factor, wanted: ir.Type) -> Convert | None:
    """The conversion of loaded elements of a factor to `wanted`; None if there is nothing to do."""
    argument = stage.body.arguments[factor.read]
    if not factor.casts and factor.value == argument and factor.tensor.element == wanted:
        return None

    def convert(x: ir.Value) -> ir.Value:
        result = _computed(kernel, stage, factor, factor.value, x)
        if factor.value.type == wanted:
            return result
        kind = vector_type(ir.VectorType(x.type).shape[0], wanted)
        # Integers are multiplied modulo their width: how they are extended makes no difference.
        return (arith.extf if isinstance(wanted, ir.FloatType) else arith.extsi)(kind, result)

    return convert


def convert_pairs(kernel: Kernel, stage: Stage, factor: Factor, step: Bf16Pairs) -> Convert | None:
    """The conversion of loaded elements of a factor to bf16; None if they are bf16 already."""
    f32 = ir.F32Type.get()
    argument = stage.body.arguments[factor.read]
    half = factor.value.owner.operands[0]
    if not factor.casts and half == argument:
        return None
    narrowing = not isinstance(half.owner, ir.Block) and half.owner.name == "arith.truncf"
    rounded = half.owner.operands[0] if narrowing else half

    def convert(x: ir.Value) -> ir.Value:
        result = _computed(kernel, stage, factor, rounded, x)
        return step.rounded(result) if rounded.type == f32 else result

    return convert


def _computed(
    kernel: Kernel, stage: Stage, factor: Factor, wanted: ir.Value, x: ir.Value
) -> ir.Value:
    """The vector `wanted`, which is computed from loaded elements `x` of a factor."""
    lanes = ir.VectorType(x.type).shape[0]
    return to_vector(computed_factor(kernel, stage, factor, wanted, Varying(x), lanes), lanes)
