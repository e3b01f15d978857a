"""The rule for products with a quantised matrix: recognises decoding inside of the contraction.

    %c = linalg.generic over (m.., p, r, b, half, group, place)
           total + left * (scale * (number(data, half) - zero) + minimum)    ->   quantized_kernel
    %o = linalg.generic (elementwise) %c, %residual                               + epilogue

The left side is f32, or 8-bit blocks: number * scale. What the numbers mean is read off the body,
so the decoding need not come from `graph.dequantize`.

Needs: the decoding fused into the contraction (`relax-fuse-tir`). Leaves: a scheduled kernel, or
the function as it was.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, linalg
from relax_mlir.dialects.graph.quantized import PANEL, SCHEMES, Scheme
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes.base import PassFailure
from relax_mlir.target import Target

from .contraction import Contraction, Factor, constant_of, loop_of
from .dot import Dot
from .emit import emit_kernel, read_kernel
from .epilogue import Unsupported
from .gemm_kernel import Tiling
from .kernel import Kernel
from .loops import mul
from .matmul import epilogue_of, kept_columns, prepare_program
from .placement import place
from .program import Argument, Computed, Program, Reshape, Stage, Tensor
from .quantized_kernel import Left, Panels, Problem, Tiles, emit_quantized

_SPLIT = (2, 4, 4)


@dataclass(frozen=True)
class Decoded:
    """A contraction whose right side is decoded; `left` and `right` are the tensors that are read.

    `decoders` are stages in front of it that belong to it.

    `left` is f32, or 8-bit numbers and their scale; `right` is data, scale and maybe minimum.
    """

    stage: Stage
    decoders: tuple[Stage, ...]
    rows: tuple[int, ...]
    columns: tuple[int, int]
    blocks: int
    scheme: Scheme
    left: tuple[Tensor, ...]
    right: tuple[Tensor, ...]


def schedule_quantized_matmul(kernel: PrimFunc, target: Target) -> bool:
    """Rewrites a tensor program that multiplies with a quantised matrix into a kernel over memrefs.

    Returns False, and leaves the function alone, if it is of another kind.
    """
    try:
        module, program = read_kernel(kernel)
        found = find_decoded(program)
        if found is None:
            return False
        placement = place(program, inline=False)
        emit_kernel(kernel, placement, target, lambda k: _emit(k, target, found))
    except (Unsupported, PassFailure):
        return False
    del module  # the program refers to it
    return True


def find_decoded(program: Program) -> Decoded | None:
    """The one contraction of a program that decodes its right side, if that is its only one."""
    found = None
    for stage in program.stages:
        if stage.window is not None or stage.gathers:
            return None
        if stage.has_reduction:
            if found is not None:
                return None
            found = match_decoded(stage)
            if found is None:
                return None
    return found


def match_decoded(stage: Stage) -> Decoded | None:
    """The stage as a product with a decoded matrix, or None."""
    if len(stage.inits) != 1 or stage.block is None or constant_of(stage.inits[0].tensor) != 0:
        return None
    matcher = _Matcher(stage)
    sides = matcher.product()
    if sides is None:
        return None
    for left, right in (sides, sides[::-1]):
        numbers = matcher.numbers(right)
        if numbers is not None:
            return matcher.assign(left, *numbers)
    return None


@dataclass(frozen=True)
class _Matcher:
    """Reads the body of a contraction."""

    stage: Stage

    def product(self) -> tuple[ir.Value, ir.Value] | None:
        """The factors a, b of a body that yields total + a * b."""
        block = self.stage.block
        total = _op(block.operations[len(block.operations) - 1].operands[0], arith.AddFOp)
        accumulator = block.arguments[len(self.stage.reads)]
        terms = [x for x in total.operands if x != accumulator] if total else []
        product = _op(terms[0], arith.MulFOp) if len(terms) == 1 else None
        return tuple(product.operands) if product else None

    def numbers(self, value: ir.Value) -> tuple[Scheme, list[int], int | None] | None:
        """The scheme of a decoded number, the reads it is made of, and the loop over halves."""
        minimum = []
        total = _op(value, arith.AddFOp)
        if total is not None:
            product = next((x for x in total.operands if _op(x, arith.MulFOp)), None)
            minimum = [x for x in total.operands if x != product]
            value = product
        product = _op(value, arith.MulFOp) if value is not None else None
        if product is None:
            return None
        integer = next((x for x in product.operands if _op(x, arith.SIToFPOp)), None)
        factors = [x for x in product.operands if x != integer] + minimum
        reads = [self._half_float(x) for x in factors]
        if integer is None or None in reads:
            return None
        q, zero = _less_constant(integer.owner.operands[0])
        byte, half = _nibble(q)
        data = self._argument(byte if byte is not None else q)
        scheme = Scheme(8 if byte is None else 4, zero, bool(minimum))
        if data is None or scheme not in SCHEMES.values():
            return None
        return scheme, [data, *reads], half

    def _half_float(self, value: ir.Value) -> int | None:
        wide = _op(value, arith.ExtFOp)
        found = self._argument(wide.operands[0]) if wide else None
        is_half = found is not None and isinstance(wide.operands[0].type, ir.F16Type)
        return found if is_half else None

    def _argument(self, value: ir.Value) -> int | None:
        """The number of the read that a scalar is."""
        if not isinstance(value.owner, ir.Block) or value.owner != self.stage.block:
            return None
        return ir.BlockArgument(value).arg_number

    def assign(
        self, left: ir.Value, scheme: Scheme, right: list[int], half: int | None
    ) -> Decoded | None:
        """Gives the loops their roles, from how the data is read; None if other maps differ."""
        stage = self.stage
        data = [loop_of(e) for e in stage.reads[right[0]].indices]
        if scheme.bits == 8:
            p, b, half, group, r, place_ = data if len(data) == 6 else [None] * 6
        else:
            p, b, group, r, place_ = data if len(data) == 5 else [None] * 5
        loops = (p, r, b, half, group, place_)
        outputs = [loop_of(e) for e in stage.inits[0].indices]
        rows = tuple(outputs[:-2])
        if None in (*loops, *outputs) or len({*loops, *rows}) != len(stage.extents):
            return None
        inner = tuple(stage.extents[loop] for loop in (half, group, place_))
        reduces = [loop for loop, reduces in enumerate(stage.reduces) if reduces]
        exact = (
            [*outputs[-2:]] == [p, r]
            and inner == _SPLIT
            and stage.extents[r] == PANEL
            and stage.extents[b] is not None
            and sorted(reduces) == sorted([b, half, group, place_])
            and all(self._reads(i, (p, b, r)) for i in right[1:])
        )
        sources = self._left(left, (*rows, b, half, group, place_)) if exact else None
        if sources is None:
            return None
        tensors = tuple(stage.reads[i].tensor for i in right)
        if not all(isinstance(t, Argument) and t.out is None for t in tensors):
            return None
        decoders = [stage.reads[i].tensor for i in range(len(stage.reads))]
        before = tuple(t.stage for t in decoders if isinstance(t, Computed))
        return Decoded(stage, before, rows, (p, r), stage.extents[b], scheme, sources, tensors)

    def _reads(self, number: int, loops: tuple[int, ...]) -> bool:
        """Whether a read is at these loops."""
        return tuple(loop_of(e) for e in self.stage.reads[number].indices) == loops

    def _left(self, value: ir.Value, loops: tuple[int, ...]) -> tuple[Tensor, ...] | None:
        """What the left side, read at `loops`, is made of: f32, or 8-bit numbers and a scale."""
        plain = self._argument(value)
        if plain is not None and isinstance(self.stage.reads[plain].tensor, Computed):
            return self._left_of_producer(plain, loops)
        by_block = loops[: -len(_SPLIT)]
        product = _op(value, arith.MulFOp)
        if plain is not None:
            reads = [(plain, loops, ir.F32Type)]
        elif product is not None:
            integer = next((x for x in product.operands if _op(x, arith.SIToFPOp)), None)
            if integer is None:
                return None
            scale = next(x for x in product.operands if x != integer)
            numbers = self._argument(integer.owner.operands[0])
            reads = [
                (numbers, loops, ir.IntegerType),
                (self._argument(scale), by_block, ir.F32Type),
            ]
        else:
            return None
        tensors = []
        for number, at, kind in reads:
            if number is None or not self._reads(number, at):
                return None
            tensor = self.stage.reads[number].tensor
            if not isinstance(tensor.element, kind) or not _is_whole_input(tensor):
                return None
            tensors.append(tensor)
        return tuple(tensors)

    def _left_of_producer(self, number: int, loops: tuple[int, ...]) -> tuple[Tensor, ...] | None:
        """The same, where a stage of its own decodes the left side."""
        producer = self.stage.reads[number].tensor.stage
        block = producer.block
        if block is None or producer.has_reduction or not self._reads(number, loops):
            return None
        written = tuple(loop_of(e) for e in producer.inits[0].indices)
        if len(producer.inits) != 1 or sorted(map(str, written)) != sorted(
            map(str, range(len(producer.extents)))
        ):
            return None
        yielded = block.operations[len(block.operations) - 1].operands[0]
        return _Matcher(producer)._left(yielded, written)


def _op(value: ir.Value, kind: type) -> ir.OpView | None:
    """The op of a kind that computes a value."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.opview
    return op if isinstance(op, kind) else None


def _less_constant(value: ir.Value) -> tuple[ir.Value, int]:
    """x and c of a value x - c."""
    for kind, sign in ((arith.SubIOp, 1), (arith.AddIOp, -1)):
        op = _op(value, kind)
        constant = _constant(op.operands[1]) if op else None
        if constant is not None:
            return op.operands[0], sign * constant
    return value, 0


def _nibble(value: ir.Value) -> tuple[ir.Value | None, int | None]:
    """The byte and the loop h of a value (byte >> 4 h) & 15."""
    masked = _op(value, arith.AndIOp)
    if masked is None or _constant(masked.operands[1]) != 15:
        return None, None
    shifted = _op(masked.operands[0], arith.ShRUIOp)
    amount = _op(shifted.operands[1], arith.MulIOp) if shifted else None
    if amount is None or _constant(amount.operands[1]) != 4:
        return None, None
    cast = _op(amount.operands[0], arith.IndexCastOp)
    index = _op(cast.operands[0], linalg.IndexOp) if cast else None
    if index is None:
        return None, None
    return shifted.operands[0], ir.IntegerAttr(index.attributes["dim"]).value


def _constant(value: ir.Value) -> int | None:
    op = _op(value, arith.ConstantOp)
    attribute = op.attributes["value"] if op else None
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _is_whole_input(tensor: Tensor) -> bool:
    """Whether the tensor is an argument, all of it in its order, under whatever dims."""
    while isinstance(tensor, Reshape):
        tensor = tensor.source
    return isinstance(tensor, Argument) and tensor.out is None


def tiles_of(target: Target, has_integers: bool) -> Tiles:
    """How the target computes tiles; `has_integers` says that the left side is 8-bit numbers."""
    dot = Dot.of(target) if has_integers else None
    lanes = dot.lanes if dot else min(PANEL, target.f32_lanes)
    heights = (1, 2, 4, 8) if lanes == PANEL else (1, 2)
    return Tiles(dot, lanes, heights)


def _emit(kernel: Kernel, target: Target, found: Decoded) -> None:
    """Emits the body of the scheduled function."""
    prepare_program(kernel)
    stage = found.stage
    shape = [kernel.extent(stage, loop) for loop in range(len(stage.extents))]
    tiles = tiles_of(target, len(found.left) == 2)
    values, *scale = (kernel.view(tensor) for tensor in found.left)
    left = Left(
        values.base, values.offset, *(x for view in scale for x in (view.base, view.offset))
    )
    buffers = [kernel.view(tensor).base for tensor in found.right]
    right = Panels(found.scheme, *buffers, *[None] * (3 - len(buffers)))
    factor = Factor(found.left[0], (), found.decoders, 0, None)
    contraction = Contraction(stage, factor, factor, (), found.rows, found.columns, -1, True, 0.0)
    epilogue = epilogue_of(kernel, Tiling.of(target), [contraction], shape)
    columns = kept_columns(kernel, [contraction], shape)
    rows = mul(1, *(shape[loop] for loop in found.rows))
    emit_quantized(tiles, Problem(rows, columns, found.blocks, left, right, epilogue))
