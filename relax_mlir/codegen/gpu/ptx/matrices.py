"""Copies to memory of a group, and matrices from there, by address; products of integers.

    nvgpu.device_async_copy %x[%i], %own[%j], 8, %n  ->  nvvm.cp.async.shared.global %to, %from, 16
    nvgpu.ldmatrix %own[%i] : vector<4x2xf16>        ->  nvvm.ldmatrix %from : (i32, i32, i32, i32)

MLIR's own lowering of these ops takes memrefs as descriptors, which kernels here do not have, and
has sums of integers stop at the least and the greatest one, where they are to wrap around.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, llvm, nvgpu, nvvm, vector
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build.loops import zero_attr

Address = Callable[[ir.Value, ir.Value], ir.Value]
"""The address of the element of a buffer at an index."""

_WORD = 32
"""Bits of a register of a matrix."""
_CACHED_BEYOND_L1 = "#nvvm<load_cache_modifier cg>"


def copy_by_address(op: nvgpu.DeviceAsyncCopyOp, address: Address) -> None:
    """Replaces a copy; elements beyond those of the source become zero."""
    i32 = ir.IntegerType.get_signless(32)
    (to,), (source,) = op.dstIndices, op.srcIndices
    size = element_bits(ir.MemRefType(op.src.type).element_type) // 8
    count = op.srcElements
    if count is not None:
        count = arith.muli(arith.index_cast(i32, count), arith.constant(i32, size))
    cache = ir.Attribute.parse(_CACHED_BEYOND_L1)
    total = ir.IntegerAttr(op.operation.attributes["dstElements"]).value * size
    nvvm.cp_async_shared_global(
        address(op.dst, to), address(op.src, source), total, cache, cp_size=count
    )
    op.operation.erase()


def load_by_address(op: nvgpu.LdMatrixOp, address: Address) -> None:
    """Replaces a load of matrices of eight rows of 16 bytes."""
    kind, (index,) = ir.VectorType(op.res.type), op.indices
    count, per_word = kind.shape
    i32 = ir.IntegerType.get_signless(_WORD)
    transposes = ir.BoolAttr(op.operation.attributes["transpose"]).value
    loaded = nvvm.LdMatrixOp(
        address(op.srcMemref, index),
        count,
        ir.Attribute.parse(f"#nvvm.mma_layout<{'col' if transposes else 'row'}>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
        results=[ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")],
    ).res
    zero = ir.DenseElementsAttr.get_splat(kind, zero_attr(kind.element_type))
    result = arith.constant(kind, zero)
    pair = ir.VectorType.get([per_word], kind.element_type)
    for i in range(count):
        word = llvm.extractvalue(i32, loaded, ir.DenseI64ArrayAttr.get([i]))
        result = vector.insert(llvm.bitcast(pair, word), result, [], [i])
    op.res.replace_all_uses_with(result)
    op.operation.erase()


def multiply_integers(op: nvgpu.MmaSyncOp) -> None:
    """Replaces a product of matrices of 8-bit integers."""
    i32, word = ir.IntegerType.get_signless(_WORD), ir.Attribute.parse("#nvvm.mma_type<s8>")
    sides = [
        [llvm.bitcast(i32, vector.extract(side, [], [i])) for i in range(side.type.shape[0])]
        for side in (op.matrixA, op.matrixB)
    ]
    positions = [(i, j) for i in range(2) for j in range(2)]
    m, n, k = (ir.IntegerAttr(x).value for x in op.mmaShape)
    product = nvvm.mma_sync(
        ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>"),
        ir.Attribute.parse(f"#nvvm.shape<m = {m}, n = {n}, k = {k}>"),
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.mma_layout<col>"),
        *sides,
        [vector.extract(op.matrixC, [], [i, j]) for i, j in positions],
        int_overflow_behavior=ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>"),
        multiplicand_a_ptx_type=word,
        multiplicand_b_ptx_type=word,
    )
    result = op.matrixC
    for at, (i, j) in enumerate(positions):
        x = llvm.extractvalue(i32, product, ir.DenseI64ArrayAttr.get([at]))
        result = vector.insert(x, result, [], [i, j])
    op.res.replace_all_uses_with(result)
    op.operation.erase()
