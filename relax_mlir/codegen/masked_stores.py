"""Stores the first lanes of a vector part by part, for machines whose stores by mask are slow.

    %m = vector.create_mask %n : vector<8xi1>
    vector.maskedstore %buffer[%i], %m, %x
      ->
    n >= 8: all of it; otherwise 4 lanes if n has the bit 4, then 2 if it has that bit, then 1

With AVX2 a store by mask takes as long as twenty whole ones, and exists for 32 and 64 bits alone;
where there is none, LLVM tests each lane. Masks that are not a number of lanes stay.
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir, scf, vector
from relax_mlir.target import Cpu

_COUNTS = ("vector.create_mask", "vector.constant_mask")
_PREDICATE = arith.CmpIPredicate


def store_by_parts(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites masked stores in place; with registers for masks, only those of one known lane.

    Of a vector that was narrowed, LLVM stores one such lane in its width before that.
    """
    has_masks = cpu.vector_bytes == 64
    found: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.maskedstore" and _can_rewrite(op.opview):
            if not has_masks or _is_one_lane(op.opview.mask.owner):
                found.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        with op.location, ir.InsertionPoint(op):
            mask = op.mask.owner
            if mask.name == "vector.create_mask":
                _store_first(op.valueToStore, op.base, op.indices[0], mask.operands[0])
            else:
                (count,) = ir.DenseI64ArrayAttr(mask.attributes["mask_dim_sizes"])
                _store_known(op.valueToStore, op.base, op.indices[0], count)
        op.operation.erase()


def _is_one_lane(mask: ir.Operation) -> bool:
    if mask.name != "vector.constant_mask":
        return False
    return list(ir.DenseI64ArrayAttr(mask.attributes["mask_dim_sizes"])) == [1]


def _can_rewrite(op: ir.OpView) -> bool:
    """Whether lanes are a power of two along one dim, and the mask is their number."""
    kind = ir.VectorType(op.valueToStore.type)
    is_flat = kind.rank == 1 and len(op.indices) == 1 and not kind.scalable
    if not is_flat or kind.shape[0] & (kind.shape[0] - 1):
        return False
    owner = op.mask.owner
    return not isinstance(owner, ir.Block) and owner.name in _COUNTS


def _store_first(x: ir.Value, buffer: ir.Value, at: ir.Value, count: ir.Value) -> None:
    """Stores the first `count` lanes of x, none where it is below 1, from `at` on."""
    lanes = ir.VectorType(x.type).shape[0]
    whole = scf.IfOp(arith.cmpi(_PREDICATE.sge, count, _index(lanes)), has_else=True)
    with ir.InsertionPoint(whole.then_block):
        vector.store(x, buffer, [at])
        scf.YieldOp([])
    with ir.InsertionPoint(whole.else_block):
        count = arith.maxsi(count, _index(0))
        for size in (1 << bit for bit in reversed(range(lanes.bit_length() - 1))):
            x, at = _store_part(x, buffer, at, count, size)
        scf.YieldOp([])


def _store_known(x: ir.Value, buffer: ir.Value, at: ir.Value, count: int) -> None:
    """The same for a number of lanes that is known."""
    lanes, begin = ir.VectorType(x.type).shape[0], 0
    for size in (1 << bit for bit in reversed(range(lanes.bit_length()))):
        if count & size:
            part = ir.VectorType.get([size], ir.VectorType(x.type).element_type)
            vector.store(_slice(x, part, begin), buffer, [arith.addi(at, _index(begin))])
            begin += size


def _store_part(
    x: ir.Value, buffer: ir.Value, at: ir.Value, count: ir.Value, size: int
) -> Sequence[ir.Value]:
    """Stores the first half of x, `size` lanes, if `count` has that bit; the next half and place.

    The next half is the second one behind a stored one, else the first.
    """
    part = ir.VectorType.get([size], ir.VectorType(x.type).element_type)
    bit = arith.cmpi(_PREDICATE.ne, arith.andi(count, _index(size)), _index(0))
    branch = scf.IfOp(bit, [part, at.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        vector.store(_slice(x, part, 0), buffer, [at])
        scf.YieldOp([_slice(x, part, size), arith.addi(at, _index(size))])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([_slice(x, part, 0), at])
    return branch.results


def _slice(x: ir.Value, kind: ir.VectorType, start: int) -> ir.Value:
    return vector.extract_strided_slice(kind, x, [start], [kind.shape[0]], [1])


def _index(number: int) -> ir.Value:
    kind = ir.IndexType.get()
    return arith.constant(kind, ir.IntegerAttr.get(kind, number))
