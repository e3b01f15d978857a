"""Rewrites ops for 64-bit Arm: conversions to bf16, and dot products in vectors of SVE.

Schedules call the intrinsics of NEON for vectors of any width; LLVM has those of 128 bits only.

Source: Arm C language extensions; LLVM `IntrinsicsAArch64.td`.
"""

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Cpu

_NEON, _SVE = "llvm.aarch64.neon.", "llvm.aarch64.sve."
_BF16_PRODUCT = f"{_NEON}bfdot"
_BYTES = 16
"""Of a vector of NEON, and of the unit that the length of SVE's is a multiple of."""


def use_instructions(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites ops of a module, in place, by the features of a 64-bit Arm."""
    if cpu.has("bf16"):
        _round_by_instruction(module)
    if cpu.vector_length:
        _multiply_in_long_vectors(module)


def _round_by_instruction(module: ir.Module) -> None:
    """Rounds vectors to bf16 by the instruction for it, in place, in modules that have products.

    %0 = arith.truncf %x : vector<4xf32> to vector<4xbf16>
      ->
    %0 = llvm.fptrunc %x : vector<4xf32> to vector<4xbf16>

    Elsewhere ten integer ops round: a module without ops on bf16 moves its elements as integers.
    """
    calls = walk_ops(module.operation, llvm.CallIntrinsicOp)
    if not any(ir.StringAttr(op.attributes["intrin"]).value == _BF16_PRODUCT for op in calls):
        return
    for op in walk_ops(module.operation, arith.TruncFOp):
        source, target = op.in_.type, op.out.type
        if not isinstance(source, ir.VectorType) or ir.VectorType(source).rank != 1:
            continue
        elements = (ir.VectorType(source).element_type, ir.VectorType(target).element_type)
        if elements == (ir.F32Type.get(), ir.BF16Type.get()):
            with op.location, ir.InsertionPoint(op):
                rounded = llvm.fptrunc(target, op.in_)
            op.out.replace_all_uses_with(rounded)
            op.operation.erase()


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
        if not name.startswith(_NEON) or _scalable(op.operands[0].type) is None:
            continue
        with op.location, ir.InsertionPoint(op):
            operands = [_inserted(x) for x in op.operands]
            product = llvm.call_intrinsic(
                operands[0].type, name.replace(_NEON, _SVE), operands, [], []
            )
            result = vector.scalable_extract(op.operands[0].type, product, 0)
        op.results[0].replace_all_uses_with(result)
        op.operation.erase()


def _scalable(fixed: ir.Type) -> ir.VectorType | None:
    """The scalable vector of the elements of a longer one; None for those of NEON."""
    kind = ir.VectorType(fixed)
    lanes = 8 * _BYTES // kind.element_type.width
    if kind.shape[0] <= lanes:
        return None
    return ir.VectorType.get([lanes], kind.element_type, scalable=[True])


def _inserted(x: ir.Value) -> ir.Value:
    """The elements of a vector as a scalable one."""
    kind = _scalable(x.type)
    return vector.scalable_insert(x, llvm.mlir_poison(kind), 0)


_MASKED_LOAD, _MASKED_STORE = "llvm.intr.masked.load", "llvm.intr.masked.store"


def mask_as_integers(module: ir.Module) -> None:
    """Loads and stores lanes of bf16 as integers, in place, which LLVM cannot select as floats.

    %0 = llvm.intr.masked.load %p, %mask, %rest : vector<8xbf16>
      ->
    %1 = llvm.intr.masked.load %p, %mask, (bitcast %rest) : vector<8xi16>
    %0 = llvm.bitcast %1 : vector<8xi16> to vector<8xbf16>

    Needs and leaves: the LLVM dialect.
    """
    integer = ir.IntegerType.get_signless(16)
    accesses: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in (_MASKED_LOAD, _MASKED_STORE):
            accesses.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in accesses:
        is_load = op.name == _MASKED_LOAD
        position = 2 if is_load else 0  # of the lanes that are not loaded, or of what is stored
        kind = ir.VectorType(op.operands[position].type)
        if kind.element_type != ir.BF16Type.get():
            continue
        as_integers = ir.VectorType.get(kind.shape, integer)
        with op.location, ir.InsertionPoint(op):
            operands = list(op.operands)
            operands[position] = llvm.bitcast(as_integers, operands[position])
            attributes = {name: op.attributes[name] for name in op.attributes}
            results = [as_integers] if is_load else []
            access = ir.Operation.create(op.name, results, operands, attributes)
            if is_load:
                op.results[0].replace_all_uses_with(llvm.bitcast(kind, access.results[0]))
        op.erase()
