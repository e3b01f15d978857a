"""Operands whose dims may broadcast at run time: read at 0 where the extent is 1 then."""

from collections.abc import Iterator, Mapping

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import Broadcast, GraphOp, TensorType, assumptions

from ..kernel import PARALLEL, KernelBuilder, affine_map, dim, empty, generic, index


def repeat_operands(op: GraphOp, kernel: KernelBuilder) -> None:
    """Repeats the inputs of a kernel to the extents of run-time broadcasting."""
    with assumptions() as assumed:
        op.check()
    undecided = [item for item in assumed if isinstance(item, Broadcast)]
    if undecided:
        for index, annotation in enumerate(kernel.in_types):
            axes = dict(_repeated(annotation, TensorType.of(op.results[0]), undecided))
            if axes:
                kernel.ins[index] = _repeat(kernel.ins[index], kernel.outs[0], axes)


def _repeated(
    annotation: TensorType, result: TensorType, undecided: list[Broadcast]
) -> Iterator[tuple[int, int]]:
    """The axes of an operand that may be repeated, each with that of the result."""
    lead = len(result.dims or ()) - len(annotation.dims or ())
    for axis, (own, reached) in enumerate(zip(annotation.dims or (), (result.dims or ())[lead:])):
        if own != reached and any(own in b.dims and reached == b.extent for b in undecided):
            yield axis, lead + axis


def _repeat(source: ir.Value, out: ir.Value, axes: Mapping[int, int]) -> ir.Value:
    """The source with the extents of `out` along axes: element i is that at min(i, extent - 1)."""
    type_ = ir.RankedTensorType(source.type)
    rank = type_.rank
    own = [
        dim(source, axis) if type_.is_dynamic_dim(axis) else n for axis, n in enumerate(type_.shape)
    ]
    shape = [dim(out, axes[axis]) if axis in axes else own[axis] for axis in range(rank)]
    last = {axis: arith.SubIOp(own[axis], index(1)).result for axis in axes}

    def body(_: ir.Value) -> ir.Value:
        loops = [linalg.IndexOp(axis).result for axis in range(rank)]
        for axis in axes:
            loops[axis] = arith.MinSIOp(loops[axis], last[axis]).result
        return tensor.ExtractOp(source, loops).result

    made = empty(shape, type_.element_type)
    identity = affine_map(rank, list(range(rank)))
    return generic([], [made], [identity], [PARALLEL] * rank, body)[0]
