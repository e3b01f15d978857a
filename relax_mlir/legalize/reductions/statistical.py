"""Tensor programs of reductions; half precision accumulates in f32."""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import (
    AllOp,
    AnyOp,
    MaxOp,
    MeanOp,
    MinOp,
    ProdOp,
    ReductionOp,
    SumOp,
    reduced_axes,
)

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    elementwise,
    empty,
    fill,
    generic,
    scalar,
)
from ..scalars import (
    add,
    compute_type,
    divide,
    from_compute,
    maximum,
    minimum,
    multiply,
    to_compute,
)

Combine = Callable[[ir.Value, ir.Value], ir.Value]


def sum(op: SumOp, kernel: KernelBuilder) -> None:
    """Adds from 0."""
    _reduce(op, kernel, lambda element: 0, add)


def prod(op: ProdOp, kernel: KernelBuilder) -> None:
    """Multiplies from 1."""
    _reduce(op, kernel, lambda element: 1, multiply)


def max(op: MaxOp, kernel: KernelBuilder) -> None:
    """The greatest from the least value of the type."""
    _reduce(op, kernel, least, maximum)


def min(op: MinOp, kernel: KernelBuilder) -> None:
    """The least from the greatest value of the type."""
    _reduce(op, kernel, greatest, minimum)


def any(op: AnyOp, kernel: KernelBuilder) -> None:
    """Or, from false."""
    _reduce(op, kernel, lambda element: 0, lambda a, b: arith.OrIOp(a, b).result)


def all(op: AllOp, kernel: KernelBuilder) -> None:
    """And, from true."""
    _reduce(op, kernel, lambda element: 1, lambda a, b: arith.AndIOp(a, b).result)


def mean(op: MeanOp, kernel: KernelBuilder) -> None:
    """The sum divided by the count of elements."""
    source = kernel.ins[0]
    rank = ir.RankedTensorType(source.type).rank
    axes = reduced_axes(list(ir.DenseI64ArrayAttr(op.attributes["axes"])), rank)
    i64 = ir.IntegerType.get_signless(64)
    count = scalar(i64, 1)
    for axis in axes:
        extent = arith.IndexCastOp(i64, dim(source, axis)).result
        count = arith.MulIOp(count, extent).result

    def average(total: ir.Value) -> ir.Value:
        return divide(total, arith.SIToFPOp(total.type, count).result)

    _reduce(op, kernel, lambda element: 0, add, average)


def least(element: ir.Type) -> float:
    """The least value of the type."""
    if isinstance(element, ir.IntegerType) and element.is_unsigned:
        return 0
    if isinstance(element, ir.IntegerType):
        return -(2 ** (element.width - 1))
    return float("-inf")


def greatest(element: ir.Type) -> float:
    """The greatest value of the type."""
    if isinstance(element, ir.IntegerType) and element.is_unsigned:
        return 2**element.width - 1
    if isinstance(element, ir.IntegerType):
        return 2 ** (element.width - 1) - 1
    return float("inf")


def _reduce(
    op: ReductionOp,
    kernel: KernelBuilder,
    start: Callable[[ir.Type], float],
    combine: Combine,
    finish: Callable[[ir.Value], ir.Value] = lambda total: total,
) -> None:
    source, out = kernel.ins[0], kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    axes = reduced_axes(list(ir.DenseI64ArrayAttr(op.attributes["axes"])), type_.rank)
    remaining = [axis for axis in range(type_.rank) if axis not in axes]
    compute = compute_type(type_.element_type)
    shape = [dim(source, i) if type_.shape[i] < 0 else type_.shape[i] for i in remaining]
    target = drop_unit_dims(out, remaining, axes)
    simple = compute == type_.element_type and not isinstance(op, MeanOp)
    destination = target if simple else empty(shape, compute)
    init = fill(scalar(compute, start(compute)), destination)
    maps = [affine_map(type_.rank, list(range(type_.rank))), affine_map(type_.rank, remaining)]
    iterators = [REDUCTION if axis in axes else PARALLEL for axis in range(type_.rank)]

    def body(x: ir.Value, total: ir.Value) -> ir.Value:
        return combine(total, to_compute(x))

    result = generic([source], [init], maps, iterators, body)[0]
    if not simple:
        element = type_.element_type
        result = elementwise([result], target, lambda x: from_compute(finish(x), element))
    kernel.finish(restore_unit_dims(result, out, remaining, axes))


def _unit_groups(remaining: list[int], rank: int) -> list[list[int]]:
    """Groups the dims of a keepdims result so that each group has one remaining dim."""
    groups: list[list[int]] = []
    pending: list[int] = []
    for axis in range(rank):
        pending.append(axis)
        if axis in remaining:
            groups.append(pending)
            pending = []
    if groups:
        groups[-1] += pending
    return groups


def drop_unit_dims(out: ir.Value, remaining: list[int], axes: tuple[int, ...]) -> ir.Value:
    """Views a keepdims output without its dims of extent 1."""
    type_ = ir.RankedTensorType(out.type)
    rank = len(remaining) + len(axes)
    if type_.rank != rank:
        return out
    result = ir.RankedTensorType.get([type_.shape[axis] for axis in remaining], type_.element_type)
    return tensor.CollapseShapeOp(result, out, _unit_groups(remaining, rank)).result


def restore_unit_dims(
    value: ir.Value, out: ir.Value, remaining: list[int], axes: tuple[int, ...]
) -> ir.Value:
    """Views a reduced tensor with the output's dims of extent 1."""
    type_ = ir.RankedTensorType(out.type)
    rank = len(remaining) + len(axes)
    if type_.rank != rank:
        return value
    sizes = [dim(out, axis) for axis in range(rank) if type_.is_dynamic_dim(axis)]
    groups = _unit_groups(remaining, rank)
    return tensor.ExpandShapeOp(type_, value, groups, sizes, list(type_.shape)).result
