"""Splits stores of the first lanes of a vector, for machines whose masked stores are slow.

    %m = vector.create_mask %n : vector<8xi1>
    vector.maskedstore %buffer[%i], %m, %x
      ->
    n >= 8: one store; otherwise 4 lanes if bit 2 of n is set, 2 if bit 1 is, then 1 if bit 0 is

With AVX2 a masked store takes as long as twenty plain ones, and exists for 32 and 64 bits only;
where there is none, LLVM tests each lane. Only masks of the first n lanes are rewritten.
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir, scf, vector
from relax_mlir.target import Cpu

COUNTS = ("vector.create_mask", "vector.constant_mask")
PREDICATE = arith.CmpIPredicate


def split_masked_stores(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites masked stores in place; with mask registers, only those of one known lane.

    LLVM would store that lane of a truncated vector in its width before the truncation.
    """
    has_masks = cpu.vector_bytes == 64 or cpu.has("v") or cpu.vector_length > 0
    stores: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.maskedstore":
            kind = ir.VectorType(op.opview.valueToStore.type)
            is_slow = not has_masks or _is_one_lane(op.opview.mask.owner)
            if is_of_first_lanes(op.opview, kind) and is_slow:
                stores.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in stores:
        with op.location, ir.InsertionPoint(op):
            mask = op.mask.owner
            if mask.name == "vector.create_mask":
                _store_first(op.valueToStore, op.base, op.indices[0], mask.operands[0])
            else:
                (count,) = ir.DenseI64ArrayAttr(mask.attributes["mask_dim_sizes"])
                _store_known(op.valueToStore, op.base, op.indices[0], count)
        op.operation.erase()


def _is_one_lane(mask: "ir.Operation | ir.Block") -> bool:
    if isinstance(mask, ir.Block) or mask.name != "vector.constant_mask":
        return False
    return list(ir.DenseI64ArrayAttr(mask.attributes["mask_dim_sizes"])) == [1]


def is_of_first_lanes(op: ir.OpView, kind: ir.VectorType) -> bool:
    """Whether the vector has one dim, a power of two, and the mask is a count of lanes."""
    is_flat = kind.rank == 1 and len(op.indices) == 1 and not kind.scalable
    if not is_flat or kind.shape[0] & (kind.shape[0] - 1):
        return False
    owner = op.mask.owner
    return not isinstance(owner, ir.Block) and owner.name in COUNTS


def _store_first(x: ir.Value, buffer: ir.Value, at: ir.Value, count: ir.Value) -> None:
    """Stores the first `count` lanes of x, none if it is below 1, at index `at`."""
    lanes = ir.VectorType(x.type).shape[0]
    whole = scf.IfOp(arith.cmpi(PREDICATE.sge, count, index(lanes)), has_else=True)
    with ir.InsertionPoint(whole.then_block):
        vector.store(x, buffer, [at])
        scf.YieldOp([])
    with ir.InsertionPoint(whole.else_block):
        count = arith.maxsi(count, index(0))
        for size in (1 << bit for bit in reversed(range(lanes.bit_length() - 1))):
            x, at = _store_part(x, buffer, at, count, size)
        scf.YieldOp([])


def _store_known(x: ir.Value, buffer: ir.Value, at: ir.Value, count: int) -> None:
    """The same for a constant count."""
    lanes, begin = ir.VectorType(x.type).shape[0], 0
    for size in (1 << bit for bit in reversed(range(lanes.bit_length()))):
        if count & size:
            part = ir.VectorType.get([size], ir.VectorType(x.type).element_type)
            vector.store(_slice(x, part, begin), buffer, [arith.addi(at, index(begin))])
            begin += size


def _store_part(
    x: ir.Value, buffer: ir.Value, at: ir.Value, count: ir.Value, size: int
) -> Sequence[ir.Value]:
    """Stores the first half of x, `size` lanes, if `count` has that bit set.

    Returns the half that remains, the second if the first was stored, and its index.
    """
    part = ir.VectorType.get([size], ir.VectorType(x.type).element_type)
    bit = arith.cmpi(PREDICATE.ne, arith.andi(count, index(size)), index(0))
    branch = scf.IfOp(bit, [part, at.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        vector.store(_slice(x, part, 0), buffer, [at])
        scf.YieldOp([_slice(x, part, size), arith.addi(at, index(size))])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([_slice(x, part, 0), at])
    return branch.results


def _slice(x: ir.Value, kind: ir.VectorType, start: int) -> ir.Value:
    return vector.extract_strided_slice(kind, x, [start], [kind.shape[0]], [1])


def index(value: int) -> ir.Value:
    """A constant."""
    kind = ir.IndexType.get()
    return arith.constant(kind, ir.IntegerAttr.get(kind, value))
