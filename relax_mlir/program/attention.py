"""The operands of attention: queries, keys and values, plain or decoded by the fused program.

%v = tensor.extract_slice %values      the argument, f32, f16 or bf16
%v = tensor.extract_slice %decoded     widened bf16, or 8-bit elements times a scale of a block
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.tir import PrimFunc

from .program import (
    Argument,
    Computed,
    MixedIndex,
    Operand,
    Program,
    Reshape,
    Slice,
    Stage,
    Tensor,
    all_known,
)


@dataclass(frozen=True)
class Source:
    """An argument, or what is decoded from it; `scale` has a factor for each block of 32.

    `length` is the extent of dim 1 that is read, for keys and values.
    """

    argument: Argument
    scale: Argument | None = None
    length: MixedIndex | None = None

    @property
    def element(self) -> ir.Type:
        """The element type in memory."""
        return self.argument.element


@dataclass(frozen=True)
class Operands:
    """The tensors that attention reads; the mask is one of a batch, added to the scores."""

    query: Source
    keys: Source
    values: Source
    mask: Source | None = None


HINT, BATCHED, SETTINGS = "attention", "batched_attention", "tir.attention"


@dataclass(frozen=True)
class Attention:
    """A program of attention whose heads and features are known.

    `batched` operands are [batch, tokens, heads, features]; others are queries [tokens, heads,
    features] and caches [heads, tokens, features]. Keys have `depth` features and values `width`.
    """

    operands: Operands
    out: Argument
    batched: bool
    heads: int
    kv_heads: int
    depth: int
    width: int
    scale: float
    causal: bool

    @property
    def group(self) -> int:
        """Query heads for each kv head."""
        return self.heads // self.kv_heads


def find_attention(kernel: PrimFunc, program: Program) -> Attention | None:
    """What a kernel with the hint `HINT` or `BATCHED` computes; None if a size is not known, or 0.

    None, too, if it is fused with anything but decoders.
    """
    if SETTINGS not in kernel.op.attributes:
        return None
    settings = kernel.op.operation.attributes[SETTINGS]
    batched = kernel.schedule_hint == BATCHED
    operands = find_batched_operands(program) if batched else find_operands(program)
    if operands is None:
        return None
    (out,) = (argument for argument in program.arguments if argument.out is not None)
    heads, width = out.shape[-2:]
    depth = operands.query.argument.shape[-1] if batched else width
    kv_heads = operands.keys.argument.shape[2 if batched else 0]
    if not heads or not width or not depth or not kv_heads:
        return None
    scale, causal = settings["scale"].value, bool(settings["causal"].value)
    return Attention(operands, out, batched, heads, kv_heads, depth, width, scale, causal)


def find_operands(program: Program) -> Operands | None:
    """The operands of a program that the legalization of attention wrote.

    None if it is fused with anything but decoders.
    """
    contractions = [stage for stage in program.stages if _is_product(stage)]
    if len(contractions) != 2:
        return None
    (query, keys), (_, values) = (stage.reads for stage in contractions)
    sources = all_known(_source(operand.tensor) for operand in (query, keys, values))
    if sources is None or sources[1].length is None or sources[2].length is None:
        return None
    return Operands(*sources)


def find_batched_operands(program: Program) -> Operands | None:
    """The operands of a program that the legalization of batched attention wrote, and no other."""
    products = [stage.reads for stage in program.stages if _is_product(stage)]
    if len(products) != 2:
        return None
    (query, keys), (_, values) = products
    tensors = [operand.tensor for operand in (query, keys, values)]
    operands = [x for x in tensors if isinstance(x, Argument) and len(x.shape) == 4]
    inputs = [argument for argument in program.arguments if argument.out is None]
    masks = [argument for argument in inputs if argument not in operands]
    if len(masks) > 1 or len(operands) != 3:
        return None
    if masks and masks[0].shape[3] == 1:
        return None  # broadcast along keys
    return Operands(*(Source(argument) for argument in (*operands, *masks)))


def _is_product(stage: Stage) -> bool:
    return stage.has_reduction and len(stage.reads) == 2 and stage.block is not None


def _source(tensor: Tensor) -> Source | None:
    length = None
    if isinstance(tensor, Slice):
        window = tensor.window
        if window.offsets != (0, 0, 0) or window.strides != (1, 1, 1) or window.dropped:
            return None
        length, tensor = window.sizes[1], tensor.source
    floats = ir.F32Type, ir.F16Type, ir.BF16Type
    if isinstance(tensor, Argument):
        return Source(tensor, None, length) if isinstance(tensor.element, floats) else None
    decoded = tensor.source if isinstance(tensor, Reshape) and not tensor.expands else tensor
    if not isinstance(decoded, Computed) or decoded.stage.block is None:
        return None
    arguments = _decoded(decoded.stage)
    return None if arguments is None else Source(*arguments, length)


def _decoded(stage: Stage) -> tuple[Argument, Argument | None] | None:
    """The arguments of a stage that widens floats, or multiplies blocks of integers by scales."""
    if stage.has_reduction or stage.window is not None or stage.gathers:
        return None
    rank = len(stage.extents)
    arguments = all_known(map(_argument, stage.reads))
    if arguments is None or _loops(stage.inits[0]) != [*range(rank)]:
        return None
    reads = list(zip(arguments, map(_loops, stage.reads), strict=True))
    block = stage.body
    result = block.operations[len(block.operations) - 1].operands[0]
    if len(reads) == 1:
        widened = _operand_of(result, arith.ExtFOp) == block.arguments[0]
        is_whole = rank == 3 and reads[0][1] == [0, 1, 2]
        return (reads[0][0], None) if widened and is_whole else None
    return _scaled(result, block, reads, rank) if len(reads) == 2 else None


def _scaled(
    result: ir.Value, block: ir.Block, reads: list, rank: int
) -> tuple[Argument, Argument] | None:
    product = None if isinstance(result.owner, ir.Block) else result.owner.opview
    elements, scales = block.arguments[0], block.arguments[1]
    if not isinstance(product, arith.MulFOp) or product.operands[1] != scales:
        return None
    if _operand_of(product.operands[0], arith.SIToFPOp) != elements:
        return None
    (data, data_loops), (scale, scale_loops) = reads
    if data_loops != [*range(rank)] or scale_loops != [*range(rank - 3)] or rank != 6:
        return None
    is_i8 = data.element == ir.IntegerType.get_signless(8)
    return (data, scale) if is_i8 and isinstance(scale.element, ir.F32Type) else None


def _argument(operand: Operand) -> Argument | None:
    tensor = operand.tensor
    if isinstance(tensor, Reshape):
        tensor = tensor.source
    return tensor if isinstance(tensor, Argument) else None


def _loops(operand: Operand) -> list[int | None]:
    return [e.position if isinstance(e, ir.AffineDimExpr) else None for e in operand.indices]


def _operand_of(result: ir.Value, kind: type) -> ir.Value | None:
    """The operand of a conversion, if it is of that kind."""
    if isinstance(result.owner, ir.Block) or not isinstance(result.owner.opview, kind):
        return None
    return result.owner.operands[0]
