"""Copies to memory of a group, and matrices from there, by address.

    nvgpu.device_async_copy %x[%i], %own[%j], 8, %n  ->  nvvm.cp.async.shared.global %to, %from, 16
    nvgpu.ldmatrix %own[%i] : vector<4x2xf16>        ->  nvvm.ldmatrix %from : (i32, i32, i32, i32)

MLIR's own lowering of these ops takes memrefs as descriptors, which kernels here do not have.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, llvm, nvgpu, nvvm, vector
from relax_mlir.dialects.graph import element_bits

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
    """Replaces a load of matrices of 8 x 8 elements of 16 bits."""
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
    zero = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 0.0))
    result = arith.constant(kind, zero)
    pair = ir.VectorType.get([per_word], kind.element_type)
    for i in range(count):
        word = llvm.extractvalue(i32, loaded, ir.DenseI64ArrayAttr.get([i]))
        result = vector.insert(llvm.bitcast(pair, word), result, [], [i])
    op.res.replace_all_uses_with(result)
    op.operation.erase()
