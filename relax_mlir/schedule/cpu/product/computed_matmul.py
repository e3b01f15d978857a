"""The rule for products whose right side the body computes, as decoders written by hand do.

    %c = linalg.generic (total + left * g(k, n))     few rows     computed_rows: in registers
    %o = linalg.generic (elementwise) %c      ->     else         nest: panels of `computed_operand`

Needs: the computation fused into the contraction (`relax-fuse-tir`). Leaves: a scheduled kernel, or
the function unchanged.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.computed_product import ComputedProduct, find_computed
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import if_else, less, mul
from relax_mlir.schedule.build.product_parts import epilogue_of, prepare_program, sliced_columns
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.isa.multiply_add import MultiplyAdd
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Cpu

from .computed_operand import Computed, ComputedSide
from .computed_rows import emit_computed_rows
from .nest import emit_product
from .product import Product
from .sides import convert_of, matrix_of


def schedule(kernel: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a product with a computed side into a kernel over memrefs.

    Returns False, and leaves the function unchanged, if the program is another one.
    """
    return rewrite(
        kernel, vectors_of(cpu), find_computed, lambda k, product: _emit(k, cpu, product)
    )


def _emit(kernel: Kernel, cpu: Cpu, product: ComputedProduct) -> None:
    """Emits the body of the scheduled function."""
    prepare_program(kernel)
    for tensor in product.right.gathers:
        kernel.prepare(tensor)
    stage = product.stage
    bits = 64 if isinstance(stage.results[0].element, ir.F64Type) else 32
    blocking = Blocking.of(cpu, bits)
    step = MultiplyAdd(blocking.lanes, f"f{bits}")
    shape = [kernel.extent(stage, loop) for loop in range(len(stage.extents))]
    convert = convert_of(kernel, stage, product.lhs, step.total)
    side = ComputedSide(kernel, product, step, shape[product.columns[0]], shape[product.depth])
    emitted = Product(
        batch=tuple(shape[loop] for loop in product.batch),
        rows=mul(1, *(shape[loop] for loop in product.rows)),
        columns=sliced_columns(kernel, [product], shape),
        depth=shape[product.depth],
        lhs=matrix_of(kernel, blocking, product, product.lhs, product.rows, shape, convert),
        rhs=(Computed(side, blocking.vectors),),
        initial=product.initial,
        epilogue=epilogue_of(kernel, blocking, [product], shape),
        step=step,
    )
    few = blocking.family.quantized.few_float_rows
    if_else(
        less(emitted.rows, few + 1),
        lambda: if_else(
            less(0, emitted.rows), lambda: emit_computed_rows(blocking, emitted, side, few)
        ),
        lambda: emit_product(blocking, emitted),
    )
