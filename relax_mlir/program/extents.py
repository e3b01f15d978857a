"""Which loops of a program have equal extents.

    %d = tensor.dim %x, %c0 : tensor<?x18xf32>        "n", for an argument whose dim has that name
    %e = arith.muli %d, %c2                           2*n
    linalg.generic ins(%x) outs(%y)                   loops equate the extents of their operands

Stages may share a loop only if their extents are proved equal; otherwise it would access their
tensors out of bounds. Extents that are not proved equal count as different.
"""

from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.symbolic import Expr, const, parse, product, sym

from .program import (
    Argument,
    Computed,
    Empty,
    MixedIndex,
    Program,
    Reshape,
    Slice,
    Splat,
    Stage,
    Tensor,
)

_ARITHMETIC = {
    arith.AddIOp: Expr.__add__,
    arith.SubIOp: Expr.__sub__,
    arith.MulIOp: Expr.__mul__,
}


@dataclass
class Extents:
    """The extents of a program as expressions, and which of them are equal."""

    program: Program
    _opaque: dict[object, Expr] = field(default_factory=dict)
    _parents: dict[Expr, Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stage in self.program.stages:
            for loop in range(len(stage.extents)):
                first, *others = self._extents_of(stage, loop) or [const(0)]
                for other in others:
                    self._equate(first, other)

    def equal(self, stage: Stage, loop: int, other: Stage, other_loop: int) -> bool:
        """Whether two loops are proved to have one extent."""
        first, second = self._extents_of(stage, loop), self._extents_of(other, other_loop)
        return bool(first and second) and self._find(first[0]) == self._find(second[0])

    def is_whole(self, part: Slice, axis: int) -> bool:
        """Whether a slice is proved to be all of its source along an axis."""
        window = part.window
        at = [i for i in range(len(window.sizes)) if i not in window.dropped][axis]
        begins = (window.offsets[at], window.strides[at]) == (0, 1)
        same = self._find(self._of(part, axis)) == self._find(self._of(part.source, at))
        return begins and same

    def _extents_of(self, stage: Stage, loop: int) -> list[Expr]:
        """The extents of a loop: its own if it is static, and those of operands."""
        own = stage.extents[loop]
        extents = [] if own is None else [const(own)]
        # An insertion writes only a part of its result.
        operands = stage.reads if stage.window is not None else [*stage.reads, *stage.inits]
        for operand in operands:
            if isinstance(operand.tensor, Empty) and not operand.tensor.sizes:
                continue
            for axis, index in enumerate(operand.indices):
                if isinstance(index, ir.AffineDimExpr) and index.position == loop:
                    extents.append(self._of(operand.tensor, axis))
        return extents

    def _of(self, tensor_: Tensor, axis: int) -> Expr:
        """One extent of a tensor."""
        extent = tensor_.shape[axis]
        if extent is not None:
            return const(extent)
        if isinstance(tensor_, Argument):
            name = self.program.dim_names[tensor_.position][axis]
            return parse(name) if name else self._unknown((tensor_, axis))
        if isinstance(tensor_, Empty) and tensor_.sizes:
            return self._index_expr(tensor_.sizes[axis])
        if isinstance(tensor_, Splat) and tensor_.like is not None:
            return self._of(tensor_.like, axis)
        if isinstance(tensor_, Computed) and tensor_.stage.block is not None:
            return self._of(tensor_.stage.inits[tensor_.index].tensor, axis)
        if isinstance(tensor_, Computed):
            stage = tensor_.stage
            whole = stage.reads[0] if stage.window is None else stage.inits[0]
            return self._of(whole.tensor, axis)
        if isinstance(tensor_, Slice):
            sizes = [
                s for i, s in enumerate(tensor_.window.sizes) if i not in tensor_.window.dropped
            ]
            return self._index_expr(sizes[axis])
        if isinstance(tensor_, Reshape) and tensor_.sizes is not None:
            return self._index_expr(tensor_.sizes[axis])
        if isinstance(tensor_, Reshape):
            return product(self._of(tensor_.source, i) for i in tensor_.groups[axis])
        return self._unknown((tensor_, axis))

    def _index_expr(self, index: MixedIndex) -> Expr:
        """An index of the program."""
        if isinstance(index, int):
            return const(index)
        if isinstance(index.owner, ir.Block):
            name = self.program.sym_names.get(index)
            return self._unknown(index) if name is None else parse(name)
        op = index.owner.opview
        if isinstance(op, arith.ConstantOp):
            return const(ir.IntegerAttr(op.attributes["value"]).value)
        if isinstance(op, tensor.DimOp):
            axis = self._index_expr(op.operands[1]).value
            source = self.program.tensors.get(op.operands[0])
            if axis is not None and source is not None and axis < len(source.shape):
                return self._of(source, axis)
        if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](*map(self._index_expr, op.operands))
        return self._unknown(index)

    def _unknown(self, key: object) -> Expr:
        """A symbol for an unnamed extent."""
        return self._opaque.setdefault(key, sym(f"_unknown_{len(self._opaque)}"))

    def _find(self, expr: Expr) -> Expr:
        while expr in self._parents:
            expr = self._parents[expr]
        return expr

    def _equate(self, a: Expr, b: Expr) -> None:
        a, b = self._find(a), self._find(b)
        if a != b:
            if b.value is not None:
                a, b = b, a
            if b.value is None:
                self._parents[b] = a
