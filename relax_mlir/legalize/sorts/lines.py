"""The lines that one task of a tensor program sorts."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, tensor

from ..kernel import index
from ..tasks import Lines

Values = Sequence[ir.Value]


@dataclass(frozen=True)
class OwnLines:
    """The lines of a task, by index."""

    source: ir.Value
    axis: int
    lines: Lines

    def read(self, j: ir.Value, k: ir.Value) -> ir.Value:
        """The k-th element of a line."""
        at = [self.lines.start(axis) for axis in range(len(self.lines.sizes))]
        if self.lines.block is not None:
            at[self.lines.block] = arith.AddIOp(at[self.lines.block], j).result
        at[self.axis] = k
        return tensor.ExtractOp(self.source, at).result

    def put(self, j: ir.Value, k: ir.Value, written: Values, outs: Values) -> Values:
        """The task's parts of the outputs with the k-th elements of a line."""
        to = self.within(j, k)
        return [tensor.InsertOp(x, out, to).result for x, out in zip(written, outs, strict=True)]

    def within(self, j: ir.Value, k: ir.Value) -> list[ir.Value]:
        """The indices in the task's part of the k-th element of a line."""
        to = [index(0)] * len(self.lines.sizes)
        if self.lines.block is not None:
            to[self.lines.block] = j
        to[self.axis] = k
        return to
