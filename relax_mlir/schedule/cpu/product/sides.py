"""The sides of a contraction as matrices in memory, and its epilogue."""

from collections.abc import Callable, Sequence

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import arith, ir
from relax_mlir.program.access import root_of
from relax_mlir.program.computed_product import ComputedProduct
from relax_mlir.program.contraction import Contraction, Factor, Summed
from relax_mlir.program.program import (
    Argument,
    Computed,
    Empty,
    Reshape,
    Slice,
    Stage,
    Tensor,
)
from relax_mlir.schedule.build.affine import evaluate, resolve
from relax_mlir.schedule.build.body import emit_body, emit_op
from relax_mlir.schedule.build.epilogue import Epilogue
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Lane, Uniform, Varying, to_vector, value_of, vector_type
from relax_mlir.schedule.build.loops import Index, add, mul, zero_attr
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.multiply_add import round_to_bf16

from .operands import Side
from .packing import Matrix

Convert = Callable[[ir.Value], ir.Value]
"""Turns a vector of loaded elements into factors."""


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
    kernel: Kernel, blocking: Blocking, contractions: Sequence[Summed], shape: Sequence[Index]
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
        lanes=blocking.lanes,
        always_mask=blocking.has_masks,
    )


def sliced_columns(kernel: Kernel, contractions: Sequence[Summed], shape: Sequence[Index]) -> Index:
    """The number of columns: of packed weights, those in the slice of the result that is used."""
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


def matrix_of(
    kernel: Kernel,
    blocking: Blocking,
    contraction: Contraction | ComputedProduct,
    factor: Factor,
    rows: Sequence[int],
    shape: Sequence[Index],
    convert: Convert | None,
) -> Side:
    """One side of the product, as a function of the index of the batch.

    `convert` turns loaded elements into factors; None where they are that already.
    """
    view = kernel.view(factor.tensor)
    if view is None:
        raise Refusal("a side has gaps in memory")
    row: Index = 0
    if rows:
        position = factor.position(rows[-1])
        assert position is not None, "a loop of rows is an index itself"
        row = view.strides[position]
    along_k = [i for i, e in enumerate(factor.indices) if contraction.depth in dims_of(e)]
    depth = view.strides[along_k[0]]
    if isinstance(contraction, Contraction) and contraction.packed and factor is contraction.rhs:
        row, depth = view.strides[0], view.strides[1]
    elif not any(isinstance(stride, int) and stride == 1 for stride in (row, depth)):
        raise Refusal("neither rows nor depth of a side are contiguous in memory")
    extent = mul(1, *(shape[loop] for loop in rows))
    length = mul(shape[contraction.depth], 2 if contraction.counts_pairs else 1)

    def matrix(batch: Sequence[Index]) -> Matrix:
        lanes: list[Lane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, batch, strict=True):
            lanes[loop] = Uniform(index)
        offset = view.offset
        for expression, stride in zip(factor.indices, view.strides, strict=True):
            at = resolve(evaluate(expression, lanes, blocking.lanes), blocking.lanes)
            offset = add(offset, mul(value_of(at), stride))
        return Matrix(view.base, offset, row, depth, extent, length, convert)

    return matrix


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


def convert_of(kernel: Kernel, stage: Stage, factor: Factor, wanted: ir.Type) -> Convert | None:
    """The conversion of loaded elements of a factor to `wanted`; None if there is nothing to do."""
    argument = stage.body.arguments[factor.read]
    if not factor.casts and factor.value == argument and factor.tensor.element == wanted:
        return None

    def convert(x: ir.Value) -> ir.Value:
        result = _computed(kernel, stage, factor, factor.value, x)
        if factor.value.type == wanted:
            return result
        kind = vector_type(ir.VectorType(x.type).shape[0], wanted)
        # Integers are multiplied modulo their width: how they are extended makes no difference.
        return (arith.extf if isinstance(wanted, ir.FloatType) else arith.extsi)(kind, result)

    return convert


def convert_pairs(kernel: Kernel, stage: Stage, factor: Factor) -> Convert | None:
    """The conversion of loaded elements of a factor to bf16; None if they are bf16 already."""
    f32 = ir.F32Type.get()
    argument = stage.body.arguments[factor.read]
    half = factor.value.owner.operands[0]
    if not factor.casts and half == argument:
        return None
    narrowing = not isinstance(half.owner, ir.Block) and half.owner.name == "arith.truncf"
    rounded = half.owner.operands[0] if narrowing else half

    def convert(x: ir.Value) -> ir.Value:
        result = _computed(kernel, stage, factor, rounded, x)
        return round_to_bf16(result) if rounded.type == f32 else result

    return convert


def _computed(
    kernel: Kernel, stage: Stage, factor: Factor, wanted: ir.Value, x: ir.Value
) -> ir.Value:
    """The vector `wanted`, which is computed from loaded elements `x` of a factor."""
    lanes = ir.VectorType(x.type).shape[0]
    lane: Lane = Varying(x)
    for cast in factor.casts:
        if cast.block is not None:
            element = cast.inits[0].tensor.element
            unused = Uniform(arith.constant(element, zero_attr(element)))
            lane = emit_body(cast.block, [lane, unused], lanes, captured=kernel.scalars)[0]
    argument = stage.body.arguments[factor.read]
    return to_vector(_follow(wanted, {argument: lane}, lanes, kernel), lanes)


def _follow(value: ir.Value, known: dict[ir.Value, Lane], lanes: int, kernel: Kernel) -> Lane:
    """Emits the computation of a scalar of a body."""
    if value not in known:
        if isinstance(value.owner, ir.Block) or value.owner.name == "arith.constant":
            return Uniform(kernel.scalars.get(value, value))
        op = value.owner.opview
        known[value] = emit_op(op, [_follow(x, known, lanes, kernel) for x in op.operands], lanes)
    return known[value]
