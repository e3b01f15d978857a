"""Finds products with a quantised matrix, which decode it inside of the contraction.

    %c = linalg.generic over (m.., p, r, b, half, group, position)
           total + left * (scale * (element(data, half) - zero) + minimum)

The left side is f32, or 8-bit blocks: element * scale, or element * scale + offset.

Needs: the decoding fused into the contraction (`relax-fuse-tir`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph.quantized import Scheme
from relax_mlir.rewriting import defining_op

from .contraction import constant_of, loop_of, loops_of, sides_of
from .decoders import Decoder, find_decoder
from .program import Argument, Computed, Program, Reshape, Stage, Tensor

_SPLIT = (2, 4, 4)


@dataclass(frozen=True)
class QuantizedProduct:
    """A contraction whose right side is decoded; see `Summed`.

    `left` are the tensors of the left side: f32 elements, or 8-bit ones, their scale and possibly
    their offset. `right` are the parts of the matrix.
    """

    stage: Stage
    before: tuple[Stage, ...]
    rows: tuple[int, ...]
    columns: tuple[int, int]
    blocks: int
    scheme: Scheme
    left: tuple[Tensor, ...]
    right: Mapping[str, Tensor]
    batch: tuple[int, ...] = ()
    packed: bool = True


def find_decoded(program: Program) -> QuantizedProduct | None:
    """The one contraction of a program that decodes its right side, if that is its only one."""
    product = None
    for stage in program.stages:
        if stage.window is not None or stage.gathers:
            return None
        if stage.has_reduction:
            if product is not None:
                return None
            product = match_decoded(stage)
            if product is None:
                return None
    return product


def match_decoded(stage: Stage) -> QuantizedProduct | None:
    """The stage as a product with a decoded matrix, or None."""
    if len(stage.inits) != 1 or stage.block is None or constant_of(stage.inits[0].tensor) != 0:
        return None
    matcher = _Matcher(stage)
    sides = sides_of(stage)
    if sides is None:
        return None
    for left, right in (sides, sides[::-1]):
        decoder = find_decoder(right, stage.block, stage.reads, len(stage.extents))
        if decoder is not None:
            return matcher.assign(left, decoder)
    return None


@dataclass(frozen=True)
class _Matcher:
    """Reads the body of a contraction."""

    stage: Stage

    def _argument(self, value: ir.Value) -> int | None:
        """The read that a scalar is."""
        if not isinstance(value.owner, ir.Block) or value.owner != self.stage.block:
            return None
        return ir.BlockArgument(value).arg_number

    def assign(self, left: ir.Value, decoder: Decoder) -> QuantizedProduct | None:
        """Gives the loops their roles; None if the left side has another form."""
        stage = self.stage
        p, r, b, half, group, position = decoder.loops
        outputs = loops_of(stage.inits[0].indices)
        if outputs is None:
            return None
        rows, blocks = tuple(outputs[:-2]), stage.extents[b]
        reduces = [loop for loop, reduces in enumerate(stage.reduces) if reduces]
        if (
            [*outputs[-2:]] != [p, r]
            or len({*decoder.loops, *rows}) != len(stage.extents)
            or sorted(reduces) != sorted([b, half, group, position])
            or blocks is None
        ):
            return None
        sources = self._left(left, (*rows, b, half, group, position))
        right = {part: stage.reads[i].tensor for part, i in decoder.operands.items()}
        inputs = all(isinstance(t, Argument) and t.out is None for t in right.values())
        if sources is None or not inputs:
            return None
        tensors = [operand.tensor for operand in stage.reads]
        before = tuple(t.stage for t in tensors if isinstance(t, Computed))
        return QuantizedProduct(stage, before, rows, (p, r), blocks, decoder.scheme, sources, right)

    def _reads(self, read: int, loops: tuple[int, ...]) -> bool:
        """Whether a read is at these loops."""
        return tuple(loop_of(e) for e in self.stage.reads[read].indices) == loops

    def _left(self, value: ir.Value, loops: tuple[int, ...]) -> tuple[Tensor, ...] | None:
        """The tensors of the left side, read at `loops`: f32, or 8-bit elements and factors."""
        plain = self._argument(value)
        if plain is not None:
            source = self.stage.reads[plain].tensor
            if isinstance(source, Computed):
                return self._left_of_producer(source.stage, plain, loops)
            reads: list[tuple[ir.Value | None, tuple[int, ...], type[ir.Type]]]
            reads = [(value, loops, ir.F32Type)]
        else:
            by_block = loops[: -len(_SPLIT)]
            elements, *factors = _blocks_of(value)
            reads = [(elements, loops, ir.IntegerType)]
            reads += [(factor, by_block, ir.F32Type) for factor in factors]
        tensors = []
        for scalar, at, kind in reads:
            read = None if scalar is None else self._argument(scalar)
            if read is None or not self._reads(read, at):
                return None
            tensor = self.stage.reads[read].tensor
            if not isinstance(tensor.element, kind) or not _is_whole_input(tensor):
                return None
            tensors.append(tensor)
        return tuple(tensors)

    def _left_of_producer(
        self, producer: Stage, read: int, loops: tuple[int, ...]
    ) -> tuple[Tensor, ...] | None:
        """The same, if a stage of its own decodes the left side."""
        block = producer.block
        if block is None or producer.has_reduction or not self._reads(read, loops):
            return None
        written = loops_of(producer.inits[0].indices)
        if len(producer.inits) != 1 or written is None:
            return None
        if sorted(written) != list(range(len(producer.extents))):
            return None
        yielded = block.operations[len(block.operations) - 1].operands[0]
        return _Matcher(producer)._left(yielded, tuple(written))


def _blocks_of(value: ir.Value) -> tuple[ir.Value | None, ...]:
    """The element q, the scale and the offset, if any, of q * scale + offset; (None,) otherwise."""
    total = defining_op(value, arith.AddFOp)
    terms = list(total.operands) if total else [value]
    product = next((x for x in terms if defining_op(x, arith.MulFOp)), None)
    if product is None:
        return (None,)
    integer = next((x for x in product.owner.operands if defining_op(x, arith.SIToFPOp)), None)
    if integer is None:
        return (None,)
    scale = next(x for x in product.owner.operands if x != integer)
    return (integer.owner.operands[0], scale, *(x for x in terms if x != product))


def _is_whole_input(tensor: Tensor) -> bool:
    """Whether the tensor is an argument, or a reshape of one."""
    while isinstance(tensor, Reshape):
        tensor = tensor.source
    return isinstance(tensor, Argument) and tensor.out is None
