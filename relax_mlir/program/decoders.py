"""Finds decoding in the body of a loop: the scalars that `graph.dequantize` legalises to.

%8 = arith.muli %half, %c4                   pattern: the body that legalisation writes
%9 = arith.shrui %byte, %8            ==     for `graph.dequantize {scheme = "q4_1"}`,
%10 = arith.andi %9, %c15 ...                simplified as fused programs are
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, func, ir, linalg
from relax_mlir.dialects.graph import DequantizeOp, TensorType
from relax_mlir.dialects.graph.quantized import NEST, PARTS, SCHEMES, Scheme
from relax_mlir.legalize.kernel import KernelBuilder
from relax_mlir.legalize.products.quantized import dequantize
from relax_mlir.passes import run_upstream

from .program import Operand

_SIMPLIFY = "builtin.module(canonicalize,cse)"


@dataclass(frozen=True)
class Decoder:
    """The scheme that a body decodes.

    `operands` are the reads by part, `loops` those of the panel, its row, the block, the half, the
    group and the position.
    """

    scheme: Scheme
    operands: dict[str, int]
    loops: tuple[int, ...]


def find_decoder(
    value: ir.Value, block: ir.Block, reads: Sequence[Operand], num_loops: int
) -> Decoder | None:
    """What a scalar of a body decodes, or None. `reads` are those of the body's loops."""
    elements = [str(operand.tensor.element) for operand in reads]
    for name, scheme in SCHEMES.items():
        needed = [element for element, _ in scheme.parts(1, NEST).values()]
        if any(elements.count(element) < needed.count(element) for element in set(needed)):
            continue
        pattern = _Pattern.of(name)
        match = _Match(block)
        if match.equal(value, pattern.value):
            loops = pattern.loops(match, reads, num_loops)
            if loops is not None:
                operands = {part: match.arguments[i] for i, part in enumerate(pattern.parts)}
                return Decoder(scheme, operands, loops)
    return None


@dataclass(frozen=True)
class _Pattern:
    """The decoder of a scheme: what it yields, and where it reads each part."""

    module: ir.Module
    value: ir.Value
    parts: tuple[str, ...]
    indices: tuple[tuple[ir.AffineExpr, ...], ...]

    @staticmethod
    def of(name: str) -> "_Pattern":
        """Legalises a small matrix of that scheme."""
        parts = SCHEMES[name].parts(1, NEST)
        annotations = {
            part: TensorType.make(dims, ir.Type.parse(element))
            for part, (element, dims) in parts.items()
        }
        types = [annotation.to_mlir() for annotation in annotations.values()]
        module = ir.Module.create(ir.Location.unknown())
        with ir.Location.unknown():
            with ir.InsertionPoint(module.body):
                holder = func.FuncOp("holder", (types, []))
            entry = holder.add_entry_block()
            with ir.InsertionPoint(entry):
                values = dict(zip(parts, entry.arguments, strict=True))
                op = DequantizeOp.build(*map(values.get, PARTS), scheme=name)
                func.ReturnOp([])
            assert isinstance(op, DequantizeOp)
            present = [annotations[part] for part in PARTS if part in parts]
            kernel = KernelBuilder("decoder", present, [TensorType.of(op.result)], module.body)
            with kernel.insertion_point:
                dequantize(op, kernel)
        run_upstream(_SIMPLIFY, module.operation)
        decoder = ir.SymbolTable(module.operation)["decoder"]
        loops = next(
            op for op in decoder.entry_block.operations if isinstance(op, linalg.GenericOp)
        )
        block = loops.regions[0].blocks[0]
        maps = [tuple(attribute.value.results) for attribute in loops.indexing_maps]
        yielded = block.operations[len(block.operations) - 1].operands[0]
        return _Pattern(module, yielded, tuple(parts), tuple(maps[: len(parts)]))

    def loops(
        self, match: "_Match", reads: Sequence[Operand], num_loops: int
    ) -> tuple[int, ...] | None:
        """The loops that match the pattern's six, if all parts are read at the same indices."""
        loop_of = dict(match.loops)
        data = reads[match.arguments[self.parts.index("data")]].indices
        for expected, index in zip(self.indices[self.parts.index("data")], data, strict=True):
            if not isinstance(index, ir.AffineDimExpr):
                return None
            if (
                loop_of.setdefault(ir.AffineDimExpr(expected).position, index.position)
                != index.position
            ):
                return None
        if len(loop_of) != 6 or len(set(loop_of.values())) != 6:
            return None
        loops = tuple(loop_of[i] for i in range(6))
        dims = [ir.AffineExpr.get_dim(loop) for loop in loops]
        remapped = ir.AffineMap.get(num_loops, 0, dims)
        for i, indices_of in enumerate(self.indices):
            composed = tuple(e.compose(remapped).maybe_downcast() for e in indices_of)
            if composed != tuple(reads[match.arguments[i]].indices):
                return None
        return loops


@dataclass
class _Match:
    """The arguments and loops of a block that match those of a pattern."""

    block: ir.Block
    arguments: dict[int, int] = field(default_factory=dict)
    loops: dict[int, int] = field(default_factory=dict)

    def equal(self, value: ir.Value, pattern: ir.Value) -> bool:
        """Whether a scalar is computed as the pattern is."""
        if isinstance(pattern.owner, ir.Block):
            if not isinstance(value.owner, ir.Block) or value.owner != self.block:
                return False
            index = ir.BlockArgument(value).arg_number
            expected = ir.BlockArgument(pattern).arg_number
            return self.arguments.setdefault(expected, index) == index
        if isinstance(value.owner, ir.Block):
            return False
        op, expected = value.owner.opview, pattern.owner.opview
        if op.operation.name != expected.operation.name or value.type != pattern.type:
            return False
        if isinstance(op, linalg.IndexOp):
            loop, index = (ir.IntegerAttr(x.attributes["dim"]).value for x in (op, expected))
            return self.loops.setdefault(index, loop) == loop
        if isinstance(op, arith.ConstantOp):
            return op.attributes["value"] == expected.attributes["value"]
        return all(map(self.equal, op.operands, expected.operands))
