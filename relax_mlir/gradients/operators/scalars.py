"""Gradients of scalars, and of elements of tensors as scalars."""

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.decompositions.emit import emit, reshape
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like


def _negated(x: ir.Value) -> ir.Value:
    return arith.NegFOp(x).result


def add(op: arith.AddFOp, adjoint: Adjoint) -> Contributions:
    """Both get all of it."""
    yield op.lhs, adjoint.seed
    yield op.rhs, adjoint.seed


def subtract(op: arith.SubFOp, adjoint: Adjoint) -> Contributions:
    """The second gets it with the sign changed."""
    yield op.lhs, adjoint.seed
    yield op.rhs, _negated(adjoint.seed)


def multiply(op: arith.MulFOp, adjoint: Adjoint) -> Contributions:
    """Each gets it times the other."""
    yield op.lhs, arith.MulFOp(adjoint.seed, op.rhs).result
    yield op.rhs, arith.MulFOp(adjoint.seed, op.lhs).result


def divide(op: arith.DivFOp, adjoint: Adjoint) -> Contributions:
    """g / b, and -g * (a / b) / b."""
    share = arith.DivFOp(adjoint.seed, op.rhs).result
    yield op.lhs, share
    yield op.rhs, _negated(arith.MulFOp(share, op.result).result)


def negate(op: arith.NegFOp, adjoint: Adjoint) -> Contributions:
    """With the sign changed."""
    yield op.operand, _negated(adjoint.seed)


def select(op: arith.SelectOp, adjoint: Adjoint) -> Contributions:
    """The operand that the condition selects gets it."""
    zero = zeros_like(adjoint.seed)
    yield op.true_value, arith.SelectOp(op.condition, adjoint.seed, zero).result
    yield op.false_value, arith.SelectOp(op.condition, zero, adjoint.seed).result


def extend(op: arith.ExtFOp | arith.TruncFOp, adjoint: Adjoint) -> Contributions:
    """The gradient in the type of the operand."""
    operand = op.operation.operands[0]
    is_wider = isinstance(op, arith.TruncFOp)
    convert = arith.ExtFOp if is_wider else arith.TruncFOp
    yield operand, convert(operand.type, adjoint.seed).result


def extract(op: tensor.ExtractOp, adjoint: Adjoint) -> Contributions:
    """Put into zeros."""
    source, *indices = op.operation.operands
    element = one_element(adjoint.seed, len(indices))
    if indices:
        starts = starts_at(indices)
        element = emit(graph.DynamicUpdateSliceOp, zeros_like(source), element, starts)
    yield source, element


def insert(op: tensor.InsertOp, adjoint: Adjoint) -> Contributions:
    """The element goes to the scalar, the rest to the tensor."""
    scalar, target, *indices = op.operation.operands
    if adjoint.wants(target):
        zero = one_element(zeros_like(scalar), len(indices))
        if indices:
            starts = starts_at(indices)
            zero = emit(graph.DynamicUpdateSliceOp, adjoint.seed, zero, starts)
        yield target, zero
    yield scalar, tensor.ExtractOp(adjoint.seed, indices).result


def from_elements(op: tensor.FromElementsOp, adjoint: Adjoint) -> Contributions:
    """Each scalar gets its element."""
    flat = reshape(adjoint.seed, [len(op.operation.operands)])
    for position, scalar in enumerate(op.operation.operands):
        if adjoint.wants(scalar):
            index = arith.ConstantOp(ir.IndexType.get(), position).result
            yield scalar, tensor.ExtractOp(flat, [index]).result


def one_element(scalar: ir.Value, rank: int) -> ir.Value:
    """A tensor of extents 1 that has a scalar."""
    kind = ir.RankedTensorType.get([1] * rank, scalar.type)
    return tensor.FromElementsOp(kind, [scalar]).result


def starts_at(indices: list[ir.Value]) -> ir.Value:
    """Indices as a tensor of i64."""
    i64 = ir.IntegerType.get_signless(64)
    values = [arith.IndexCastOp(i64, index).result for index in indices]
    kind = ir.RankedTensorType.get([len(values)], i64)
    return tensor.FromElementsOp(kind, values).result
