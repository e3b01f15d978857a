"""Rewrites ops for 64-bit Arm: conversions to bf16, and dot products in vectors of SVE.

Schedules call the intrinsics of NEON for vectors of any width; LLVM has those of 128 bits only.

Source: Arm C language extensions; LLVM `IntrinsicsAArch64.td`.
"""

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import KNOWN_VECTOR, Cpu

_NEON, _SVE = "llvm.aarch64.neon.", "llvm.aarch64.sve."
_BF16_PRODUCT = f"{_NEON}bfdot"
_ROUND = f"{_SVE}fcvt.bf16f32.v2"


def use_instructions(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites ops of a module, in place, by the features of a 64-bit Arm."""
    if cpu.has("bf16"):
        _round_by_instruction(module, cpu.vector_length)
    if cpu.vector_length:
        _multiply_in_long_vectors(module)


def _round_by_instruction(module: ir.Module, length: int) -> None:
    """Rounds vectors to bf16 by the instruction for it, in place, in modules that have products.

    %0 = arith.truncf %x : vector<4xf32> to vector<4xbf16>
      ->
    %0 = llvm.fptrunc %x : vector<4xf32> to vector<4xbf16>

    With SVE, only vectors of its length. Elsewhere ten integer ops round: a module without ops on
    bf16 moves its elements as integers.
    """
    calls = walk_ops(module.operation, llvm.CallIntrinsicOp)
    if not any(ir.StringAttr(op.attributes["intrin"]).value == _BF16_PRODUCT for op in calls):
        return
    f32, bf16 = ir.F32Type.get(), ir.BF16Type.get()
    for op in walk_ops(module.operation, arith.TruncFOp):
        if not isinstance(op.in_.type, ir.VectorType):
            continue
        source, target = ir.VectorType(op.in_.type), ir.VectorType(op.out.type)
        if source.rank != 1 or (source.element_type, target.element_type) != (f32, bf16):
            continue
        if length and 4 * source.shape[0] != length:
            continue
        with op.location, ir.InsertionPoint(op):
            rounded = _rounded(op.in_, target) if length else llvm.fptrunc(target, op.in_)
        op.out.replace_all_uses_with(rounded)
        op.operation.erase()


def _rounded(x: ir.Value, target: ir.VectorType) -> ir.Value:
    """A vector of SVE's length rounded to bf16, which the lower halves of its lanes get."""
    i16, i32 = (ir.IntegerType.get_signless(bits) for bits in (16, 32))
    all_lanes = ir.VectorType.get([4], ir.IntegerType.get_signless(1), scalable=[True])
    true = ir.DenseElementsAttr.get_splat(all_lanes, ir.BoolAttr.get(True))
    halves = ir.VectorType.get([8], ir.BF16Type.get(), scalable=[True])
    operands = [llvm.mlir_poison(halves), arith.constant(all_lanes, true), _inserted(x)]
    rounded = llvm.call_intrinsic(halves, _ROUND, operands, [], [])
    lanes = llvm.bitcast(ir.VectorType.get([4], i32, scalable=[True]), rounded)
    fixed = vector.scalable_extract(ir.VectorType.get(target.shape, i32), lanes, 0)
    return llvm.bitcast(target, arith.trunci(ir.VectorType.get(target.shape, i16), fixed))


def _multiply_in_long_vectors(module: ir.Module) -> None:
    """Replaces dot products of vectors longer than NEON's, in place.

    %0 = llvm.call_intrinsic "llvm.aarch64.neon.sdot"(%s, %a, %b)
           : (vector<8xi32>, vector<32xi8>, vector<32xi8>) -> vector<8xi32>
      ->
    %1 = llvm.call_intrinsic "llvm.aarch64.sve.sdot"(%s', %a', %b')
           : (vector<[4]xi32>, vector<[16]xi8>, vector<[16]xi8>) -> vector<[4]xi32>
    %0 = vector.scalable.extract %1[0] : vector<8xi32> from vector<[4]xi32>

    Vectors of SVE are as long as fixed ones here, so that inserting and extracting does nothing.
    """
    for op in walk_ops(module.operation, llvm.CallIntrinsicOp):
        name = ir.StringAttr(op.attributes["intrin"]).value
        if not name.startswith(_NEON) or not _is_long(op.operands[0].type):
            continue
        with op.location, ir.InsertionPoint(op):
            operands = [_inserted(x) for x in op.operands]
            product = llvm.call_intrinsic(
                operands[0].type, name.replace(_NEON, _SVE), operands, [], []
            )
            result = vector.scalable_extract(op.operands[0].type, product, 0)
        op.results[0].replace_all_uses_with(result)
        op.operation.erase()


def _is_long(kind: ir.Type) -> bool:
    """Whether a vector is longer than NEON's."""
    bits = ir.VectorType(kind).shape[0] * ir.VectorType(kind).element_type.width
    return bits > 8 * KNOWN_VECTOR


def _inserted(x: ir.Value) -> ir.Value:
    """The elements of a vector as a scalable one; those of bf16 as integers until they are in it.

    LLVM passes fixed vectors of bf16 through memory.
    """
    element = ir.VectorType(x.type).element_type
    lanes = 8 * KNOWN_VECTOR // element.width
    scalable = ir.VectorType.get([lanes], element, scalable=[True])
    if element != ir.BF16Type.get():
        return vector.scalable_insert(x, llvm.mlir_poison(scalable), 0)
    i16 = ir.IntegerType.get_signless(16)
    bits = llvm.bitcast(ir.VectorType.get(ir.VectorType(x.type).shape, i16), x)
    whole = llvm.mlir_poison(ir.VectorType.get([lanes], i16, scalable=[True]))
    return llvm.bitcast(scalable, vector.scalable_insert(bits, whole, 0))
