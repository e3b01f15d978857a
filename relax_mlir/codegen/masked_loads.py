"""Splits loads of the first lanes of a vector, for machines without masked loads.

    %m = vector.create_mask %n : vector<4xi1>
    %x = vector.maskedload %buffer[%i], %m, %zeros
      ->
    n >= 4: one load; otherwise 2 lanes if bit 1 of n is set, then 1 if bit 0 is, zeros behind them

LLVM would test each lane. Only masks of the first n lanes are rewritten.
"""

from relax_mlir.bindings import arith, ir, scf, vector
from relax_mlir.codegen.masked_stores import PREDICATE, index, is_of_first_lanes


def split_masked_loads(module: ir.Module) -> None:
    """Rewrites masked loads in place."""
    loads: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.maskedload":
            if is_of_first_lanes(op.opview, ir.VectorType(op.results[0].type)):
                loads.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in loads:
        with op.location, ir.InsertionPoint(op):
            loaded = _load_first(op, ir.VectorType(op.result.type))
            if not _is_zero(op.pass_thru):
                loaded = arith.select(op.mask, loaded, op.pass_thru)
        op.result.replace_all_uses_with(loaded)
        op.operation.erase()


def _is_zero(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    return owner.attributes["value"] == _zero_of(ir.VectorType(value.type))


def _zero_of(kind: ir.VectorType) -> ir.Attribute:
    element = kind.element_type
    is_float = isinstance(element, ir.FloatType)
    zero = ir.FloatAttr.get(element, 0.0) if is_float else ir.IntegerAttr.get(element, 0)
    return ir.DenseElementsAttr.get_splat(kind, zero)


def _load_first(op: ir.OpView, kind: ir.VectorType) -> ir.Value:
    """The first lanes that the mask counts, none if it is below 1, zeros behind them."""
    (lanes,) = kind.shape
    mask, at = op.mask.owner, op.indices[0]
    if mask.name == "vector.create_mask":
        count = mask.operands[0]
    else:
        (known,) = ir.DenseI64ArrayAttr(mask.attributes["mask_dim_sizes"])
        count = index(known)
    whole = scf.IfOp(arith.cmpi(PREDICATE.sge, count, index(lanes)), [kind], has_else=True)
    with ir.InsertionPoint(whole.then_block):
        scf.YieldOp([vector.load(kind, op.base, [at])])
    with ir.InsertionPoint(whole.else_block):
        scf.YieldOp([_rest(op.base, at, arith.maxsi(count, index(0)), kind)])
    return whole.results[0]


def _rest(buffer: ir.Value, at: ir.Value, count: ir.Value, kind: ir.VectorType) -> ir.Value:
    """The elements from the last multiple of the lanes up to the count, zeros behind them."""
    (lanes,) = kind.shape
    zeros = arith.constant(kind, _zero_of(kind))
    if lanes == 1:
        return zeros
    half = lanes // 2
    part = ir.VectorType.get([half], kind.element_type)
    rest = _rest(buffer, at, count, part)
    bit = arith.cmpi(PREDICATE.ne, arith.andi(count, index(half)), index(0))
    branch = scf.IfOp(bit, [kind], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        first = arith.addi(at, arith.andi(count, index(-lanes)))
        both = _inserted(vector.load(part, buffer, [first]), zeros, 0)
        scf.YieldOp([_inserted(rest, both, half)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([_inserted(rest, zeros, 0)])
    return branch.results[0]


def _inserted(part: ir.Value, into: ir.Value, start: int) -> ir.Value:
    return vector.insert_strided_slice(part, into, [start], [1])
