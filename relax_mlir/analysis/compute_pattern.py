"""The compute pattern of a tensor program, derived from the maps of its reads and writes.

    read map of a linalg.generic, its output being written at (d0, d1)     pattern
    (d0, d1)                                                               element_wise
    (d1), (d0, 0)      loops in order, some left out                       broadcast
    (d1, d0), (d0, d1 + 4), gathers, slices, reshapes, insertions          injective
    a reduction that multiplies and adds                                   out_fusible
    any other reduction                                                    reduction

A program has the hardest pattern of its ops; broadcast with an element-wise read is
element-wise. An op that is not understood is opaque.

Source: paper Algorithm 1; TVM `AnnotateTIROpPattern`.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.tir import PATTERNS, PrimFunc

_MOVES = (
    tensor.CollapseShapeOp,
    tensor.ExpandShapeOp,
    tensor.ExtractSliceOp,
    tensor.InsertSliceOp,
)
_SILENT = (
    arith.ConstantOp,
    func.ReturnOp,
    linalg.FillOp,
    linalg.YieldOp,
    tensor.CastOp,
    tensor.DimOp,
    tensor.EmptyOp,
)
_CASTS = (arith.ExtFOp, arith.TruncFOp, linalg.YieldOp)


def compute_pattern(kernel: PrimFunc) -> str:
    """Returns the pattern of a tensor program that has not been scheduled, one of `PATTERNS`."""
    if kernel.is_scheduled or kernel.schedule_hint is not None:
        return "opaque"
    operations = list(kernel.op.entry_block.operations)
    generics = [op for op in operations if isinstance(op, linalg.GenericOp)]
    if any(_is_opaque(op) for op in operations):
        return "opaque"
    reductions = [op for op in generics if has_reduction(op)]
    parts = [_pattern_of(op) for op in operations if op not in reductions]
    if not reductions:
        return _hardest(parts)
    if len(reductions) > 1 or not is_contraction(reductions[0]):
        return "reduction"
    # Producers of the factors, such as padding, do not move the output's elements.
    before = _producers_of(reductions[0])
    after = [op for op in operations if op not in before and op not in reductions]
    after = [op for op in after if not isinstance(op, tensor.CollapseShapeOp)]
    fusible = at_most(_hardest(map(_pattern_of, after)), "broadcast")
    return "out_fusible" if fusible else "reduction"


def _is_opaque(op: ir.OpView) -> bool:
    """Whether no pattern is known of the op."""
    known = isinstance(op, (linalg.GenericOp, tensor.ExtractOp, *_MOVES, *_SILENT))
    return not known and not _is_scalar(op)


def _pattern_of(op: ir.OpView) -> str:
    """The pattern of one op that does not accumulate."""
    if isinstance(op, linalg.GenericOp):
        return _pattern_of_reads(op)
    return "injective" if isinstance(op, (tensor.ExtractOp, *_MOVES)) else "element_wise"


def _hardest(patterns: Iterable[str]) -> str:
    return reduce(harder, patterns, "element_wise")


def _producers_of(op: ir.OpView) -> set[ir.OpView]:
    """The ops that compute the operands of a reduction."""
    producers: set[ir.OpView] = set()
    pending = list(op.operands)
    while pending:
        value = pending.pop()
        if not isinstance(value.owner, ir.Block) and value.owner.opview not in producers:
            producers.add(value.owner.opview)
            pending += value.owner.operands
    return producers


def harder(a: str, b: str) -> str:
    """The pattern of the two that is harder to fuse."""
    return max(a, b, key=PATTERNS.index)


def at_most(pattern: str | None, bound: str) -> bool:
    """Whether a pattern is at most as hard to fuse as `bound`; False if it is not known."""
    return pattern is not None and PATTERNS.index(pattern) <= PATTERNS.index(bound)


def _is_scalar(op: ir.OpView) -> bool:
    """Whether the op computes on scalars only."""
    values = [*op.operands, *op.results]
    return not len(op.regions) and not any(isinstance(v.type, ir.ShapedType) for v in values)


def has_reduction(op: linalg.GenericOp) -> bool:
    """Whether a loop of the op accumulates."""
    return any("parallel" not in str(kind) for kind in op.iterator_types)


def _pattern_of_reads(op: linalg.GenericOp) -> str:
    maps = [attribute.value for attribute in op.indexing_maps]
    count = len(op.inputs)
    writes = maps[count:]
    if any(write != writes[0] for write in writes) or not _is_identity(writes[0]):
        return "injective" if all(map(_is_permutation, writes)) else "opaque"
    reads = [_pattern_of_read(read) for read in maps[:count]]
    if any(isinstance(child, tensor.ExtractOp) for child in op.regions[0].blocks[0].operations):
        reads.append("injective")
    if "injective" in reads:
        return "injective"
    if "element_wise" in reads or not reads:
        return "element_wise"
    return "broadcast"


def _pattern_of_read(read: ir.AffineMap) -> str:
    """The pattern of one read, where each element is written at its own loops."""
    if _is_identity(read):
        return "element_wise"
    last = -1
    for expression in read.results:
        if isinstance(expression, ir.AffineConstantExpr):
            continue
        if not isinstance(expression, ir.AffineDimExpr) or expression.position <= last:
            return "injective"
        last = expression.position
    return "broadcast"


def _is_identity(map_: ir.AffineMap) -> bool:
    results = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in map_.results]
    return results == list(range(map_.n_dims))


def _is_permutation(map_: ir.AffineMap) -> bool:
    positions = [e.position for e in map_.results if isinstance(e, ir.AffineDimExpr)]
    return sorted(positions) == list(range(map_.n_dims)) and len(positions) == len(map_.results)


def is_contraction(op: linalg.GenericOp) -> bool:
    """Whether the op is a sum of products of two reads: a multiply-add."""
    if len(op.inputs) != 2 or len(op.outputs) != 1 or not has_reduction(op):
        return False
    block = op.regions[0].blocks[0]
    left, right, total = block.arguments
    yielded = _defined_by(block.operations[len(block.operations) - 1].operands[0])
    if not isinstance(yielded, arith.AddFOp | arith.AddIOp):
        return False
    terms = [operand for operand in yielded.operands if operand != total]
    product = _defined_by(terms[0]) if len(terms) == 1 else None
    if not isinstance(product, arith.MulFOp | arith.MulIOp):
        return False
    roots = [_roots(operand, block) for operand in product.operands]
    return roots in ([{left}, {right}], [{right}, {left}])


def _defined_by(value: ir.Value) -> ir.OpView | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def _roots(value: ir.Value, block: ir.Block) -> set[ir.Value]:
    """The block arguments that a scalar is computed from."""
    if isinstance(value.owner, ir.Block):
        return {value} if value.owner == block else set()
    roots: set[ir.Value] = set()
    for operand in value.owner.operands:
        roots |= _roots(operand, block)
    return roots


def moves_only(kernel: PrimFunc) -> bool:
    """Whether each output element is an input element, possibly converted: a copy under a map.

    A matrix multiplication can read the input of such a program instead, at no cost.
    """
    body = [
        op
        for op in kernel.op.entry_block.operations
        if not isinstance(op, tensor.CastOp | func.ReturnOp)
    ]
    if len(body) != 1 or not isinstance(body[0], linalg.GenericOp):
        return False
    return len(body[0].inputs) == 1 and len(body[0].outputs) == 1 and _is_copy(body[0])


def _is_copy(op: linalg.GenericOp) -> bool:
    maps: Sequence[ir.AffineMap] = [attribute.value for attribute in op.indexing_maps]
    operations = op.regions[0].blocks[0].operations
    plain = all(isinstance(child, _CASTS) for child in operations)
    return plain and all(map(_is_permutation, maps)) and not has_reduction(op)
