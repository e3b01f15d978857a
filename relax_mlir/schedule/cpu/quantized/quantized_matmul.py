"""The rule for products with a quantised matrix, which is decoded inside of the contraction.

    %c = linalg.generic over (m.., p, r, b, half, group, position)
           total + left * (scale * (element(data, half) - zero) + minimum)   ->   quantized_floats
    %o = linalg.generic (elementwise) %c, %residual                               + epilogue

The left side is f32, or 8-bit blocks: element * scale, or element * scale + offset.

Needs: the decoding fused into the contraction (`relax-fuse-tir`). Leaves: a scheduled kernel, or
the function unchanged.
"""

from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.quantized_product import QuantizedProduct, find_decoded
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import mul
from relax_mlir.schedule.build.product_parts import epilogue_of, prepare_program, sliced_columns
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.amx import has_tiles
from relax_mlir.schedule.cpu.isa.dot import Dot
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Cpu

from .quantized_floats import emit_floats
from .quantized_integers import emit_integers
from .quantized_panels import Left, Panels, Problem


def schedule(kernel: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that multiplies with a quantised matrix into a kernel over memrefs.

    Returns False, and leaves the function unchanged, if the program is another one.
    """
    return rewrite(kernel, vectors_of(cpu), find_decoded, lambda k, product: _emit(k, cpu, product))


def _emit(kernel: Kernel, cpu: Cpu, product: QuantizedProduct) -> None:
    """Emits the body of the scheduled function."""
    prepare_program(kernel)
    stage = product.stage
    shape = [kernel.extent(stage, loop) for loop in range(len(stage.extents))]
    left = Left(*map(kernel.memory, product.left))
    parts = {name: kernel.memory(tensor).base for name, tensor in product.right.items()}
    right = Panels(product.scheme, product.blocks, parts, cpu)
    epilogue = epilogue_of(kernel, Blocking.of(cpu), [product], shape)
    columns = sliced_columns(kernel, [product], shape)
    rows = mul(1, *(shape[loop] for loop in product.rows))
    outputs = [kernel.memory(result) for result in epilogue.outputs]
    problem = Problem(rows, columns, left, right, epilogue, outputs)
    dot = Dot.of(cpu) if len(product.left) > 1 else None
    if dot is None:
        emit_floats(cpu, problem)
    else:
        in_tiles = dot.lanes == PANEL and has_tiles(cpu, "int8")
        emit_integers(dot, problem, in_tiles)
