"""What schedules of products share: their programs, sides and epilogues, for any vectors."""

from collections.abc import Sequence
from typing import Protocol

from relax_mlir.bindings import arith, ir
from relax_mlir.program.access import root_of
from relax_mlir.program.contraction import Factor, Summed
from relax_mlir.program.program import (
    Argument,
    Computed,
    Empty,
    Reshape,
    Slice,
    Stage,
    Tensor,
)

from .body import emit_body, emit_op
from .epilogue import Epilogue
from .kernel import Kernel
from .lanes import Lane, Uniform
from .loops import Index, mul, zero_attr
from .refusal import Refusal


class Lanes(Protocol):
    """How many sums are computed at once, and whether loads and stores have masks."""

    @property
    def lanes(self) -> int:
        """The lanes of a vector of sums."""

    @property
    def has_masks(self) -> bool:
        """Whether there are instructions for masked loads and stores."""


def prepare_program(kernel: Kernel) -> None:
    """Emits the scalars, extents and views that all loops use, before the loops."""
    program = kernel.placement.program
    for item in program.items:
        if not isinstance(item, Stage):
            if item.operation.name == "tensor.extract":
                raise Refusal("an index is read from a tensor")
            kernel.run_scalar(item)
            continue
        for operand in [*item.reads, *item.inits]:
            kernel.prepare(operand.tensor)
            _prepare_sizes(kernel, operand.tensor)
        for result in item.results:
            kernel.sizes(result)
            kernel.prepare(result)


def _prepare_sizes(kernel: Kernel, tensor: Tensor) -> None:
    """Emits the extents of a tensor and of the tensors that it is a view of."""
    if not (isinstance(tensor, Empty) and len(tensor.sizes) != len(tensor.shape)):
        kernel.sizes(tensor)
    if isinstance(tensor, Slice | Reshape):
        _prepare_sizes(kernel, tensor.source)


def epilogue_of(
    kernel: Kernel, lanes: Lanes, contractions: Sequence[Summed], shape: Sequence[Index]
) -> Epilogue:
    """The epilogue: the stages after the contractions."""
    program = kernel.placement.program
    done = {c.stage for c in contractions}
    done |= {stage for c in contractions for stage in c.before}
    outputs = [result for stage in program.stages for result in stage.results]
    outputs = [result for result in outputs if _is_output(kernel, result)]
    return Epilogue(
        kernel=kernel,
        contractions=contractions,
        stages=[stage for stage in program.stages if stage not in done],
        outputs=outputs,
        shape=shape,
        lanes=lanes.lanes,
        always_mask=lanes.has_masks,
    )


def sliced_columns(kernel: Kernel, contractions: Sequence[Summed], shape: Sequence[Index]) -> Index:
    """The columns: of packed weights, those in the slice of the result that is used."""
    return sliced_extent(kernel, contractions, contractions[0].columns, shape, -1)


def sliced_extent(
    kernel: Kernel,
    contractions: Sequence[Summed],
    loops: Sequence[int],
    shape: Sequence[Index],
    axis: int,
) -> Index:
    """The extent of `loops`: of packed weights, that of the slice of the result along `axis`.

    Raises Refusal if slices keep different extents, or a part of another axis.
    """
    everything = mul(1, *(shape[loop] for loop in loops))
    packed = contractions[0].packed
    _check_slices(kernel, axis if packed else None)
    if not packed:
        return everything
    results = {c.stage.results[0] for c in contractions}
    extents = []
    for stage in kernel.placement.program.stages:
        for operand in stage.reads:
            tensor, size = operand.tensor, everything
            while isinstance(tensor, Slice | Reshape):
                if isinstance(tensor, Slice):
                    size = kernel.sizes(tensor)[axis]
                tensor = tensor.source
            if tensor in results:
                extents.append(size)
    if any(size != extents[0] for size in extents):
        raise Refusal("slices of the product have different extents")
    return extents[0] if extents else everything


def _check_slices(kernel: Kernel, axis: int | None) -> None:
    """Refuses slices of computed tensors along an axis other than `axis`.

    The epilogue stores whole blocks of sums.
    """
    placement = kernel.placement
    for stage in placement.program.stages:
        for operand in stage.reads:
            tensor = operand.tensor
            while isinstance(tensor, Slice | Reshape):
                if isinstance(tensor, Slice) and isinstance(root_of(tensor), Computed):
                    rank, source = len(tensor.shape), tensor.source
                    whole = (placement.extents.is_whole(tensor, i) for i in range(rank))
                    is_allowed = all(x or i - rank == axis for i, x in enumerate(whole))
                    if not is_allowed or any(source.shape[i] != 1 for i in tensor.window.dropped):
                        raise Refusal("a slice keeps a part of what is computed")
                tensor = tensor.source


def _is_output(kernel: Kernel, result: Computed) -> bool:
    """Whether a tensor is returned, or is a copy of one that is."""
    program = kernel.placement.program
    spot = kernel.placement.spot(result)
    if spot is None or not isinstance(spot.owner, Argument):
        return False
    for tensor in program.returned:
        while isinstance(tensor, Reshape):
            tensor = tensor.source
        if tensor is result:
            return True
    return result not in program.tensors.values()


def computed_factor(
    kernel: Kernel, stage: Stage, factor: Factor, wanted: ir.Value, lane: Lane, lanes: int
) -> Lane:
    """The scalar `wanted` of a contraction's body, computed from loaded elements of a factor."""
    for cast in factor.casts:
        if cast.block is not None:
            element = cast.inits[0].tensor.element
            unused = Uniform(arith.constant(element, zero_attr(element)))
            lane = emit_body(cast.block, [lane, unused], lanes, captured=kernel.scalars)[0]
    argument = stage.body.arguments[factor.read]
    return _follow(wanted, {argument: lane}, lanes, kernel)


def _follow(value: ir.Value, known: dict[ir.Value, Lane], lanes: int, kernel: Kernel) -> Lane:
    """Emits the computation of a scalar of a body."""
    if value not in known:
        if isinstance(value.owner, ir.Block) or value.owner.name == "arith.constant":
            return Uniform(kernel.scalars.get(value, value))
        op = value.owner.opview
        known[value] = emit_op(op, [_follow(x, known, lanes, kernel) for x in op.operands], lanes)
    return known[value]
