"""Outlines runs of calls whose shapes never change, or only with given symbols.

    %0 = "graph.call_tir"(%x, %w) {callee = @matmul}
    %1 = "graph.call_tir"(%0) {callee = @relu}
      ->
    func.func private @captured(%x, %w) attributes {graph.captured = ["n"], graph.noinline} {
      both calls, return %1
    }
    %1 = "graph.call"(%x, %w) {callee = @captured}

Such a run launches the same kernels with the same sizes whenever the symbols have the same values:
a device can record it once for each of them, and replay it. `symbols` are those that may occur,
none by default. A run has `min-size` to `max-size` calls; it ends at what is no call of a kernel
or library, at updates in place, at other dims, and where a call would have too many operands.

The runtime of NVIDIA's devices records any launches that follow one another, and needs no such
functions (docs/gpu.md). On a CPU the recorded list is the function: host code is native, and
checks nothing between calls, so that a replay is a call and saves no time. Equal runs, as of equal
layers, are one function, whose temporaries are planned apart from those of its callers. It states
the facts of the caller on its symbols, so that a plan by bounds (`relax-plan-memory{static=true}`)
is one there too.

Needs: calls of tensor programs with known dims (`relax-legalize-ops`). Leaves: private functions
    that are not inlined. Source: paper §4.5; TVM `RewriteCUDAGraph`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    CAPTURED,
    COMPOSITE,
    FACTS,
    NOINLINE,
    PRIMITIVE,
    facts_of,
    graph_functions,
)
from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.rename import own_symbols
from relax_mlir.analysis.symbols import symbols_of
from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph import (
    CallDpsLibraryOp,
    CallTirOp,
    TensorType,
    annotation_of,
)
from relax_mlir.outlining import Group, Outliner, Refused
from relax_mlir.passes import Pass
from relax_mlir.symbolic import Facts

Call = CallTirOp | CallDpsLibraryOp


@dataclass(frozen=True)
class CaptureStatic(Pass):
    """Outlines runs of calls whose shapes never change, or only with given symbols."""

    needs_verified: ClassVar[bool] = True

    symbols: tuple[str, ...] = ()
    min_size: int = 2
    max_size: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.min_size <= self.max_size:
            raise ValueError(
                f"expects 1 <= min-size <= max-size, but got {self.min_size} and {self.max_size}"
            )

    def run(self, op: ir.Operation) -> None:
        """Looks at every block of the graph functions."""
        outliner = Outliner(op, Purity.of(op))
        for function in graph_functions(op):
            if not {PRIMITIVE, COMPOSITE, CAPTURED} & set(function.attributes):
                facts = facts_of(function)
                for block in list(_blocks(function.operation)):
                    for calls in list(self._runs(block)):
                        self._outline(calls, outliner, facts)

    def _runs(self, block: ir.Block) -> Iterator[list[ir.Operation]]:
        """The longest runs of calls that can be captured."""
        run: list[ir.Operation] = []
        for op in block.operations:
            if isinstance(op, Call) and self._is_fixed(op):
                run.append(op.operation)
            elif not isinstance(op, arith.ConstantOp):
                yield run
                run = []
        yield run

    def _is_fixed(self, call: Call) -> bool:
        annotations = [annotation_of(value) for value in (*call.ins, *call.outs)]
        if not all(isinstance(each, TensorType) and each.is_exact for each in annotations):
            return False
        return {*symbols_of(annotations), *own_symbols(call)} <= set(self.symbols)

    def _outline(self, calls: Sequence[ir.Operation], outliner: Outliner, facts: Facts) -> None:
        """Outlines a run, in pieces if one call cannot replace all of it."""
        piece: Group | None = None
        for op in calls:
            longer = None
            if piece is None or len(piece.ops) < self.max_size:
                longer = _group([] if piece is None else piece.ops, op, outliner)
            if longer is None and piece is not None:
                self._finish(piece, outliner, facts)
                longer = _group([], op, outliner)
            piece = longer
        if piece is not None:
            self._finish(piece, outliner, facts)

    def _finish(self, piece: Group, outliner: Outliner, facts: Facts) -> None:
        if len(piece.ops) < self.min_size or not piece.outputs:
            return
        values = [value for op in piece.ops for value in (*op.operands, *op.results)]
        used = {*symbols_of(map(annotation_of, values))}.union(
            *(own_symbols(op.opview) for op in piece.ops)
        )
        names = [ir.StringAttr.get(name) for name in sorted(used)]
        marks: dict[str, ir.Attribute] = {CAPTURED: ir.ArrayAttr.get(names)}
        own = [ir.StringAttr.get(str(fact)) for fact in facts if fact.symbols <= used]
        if own:
            marks[FACTS] = ir.ArrayAttr.get(own)
        outliner.outline(piece, "captured", {**marks, NOINLINE: ir.UnitAttr.get()})


def _group(ops: Sequence[ir.Operation], op: ir.Operation, outliner: Outliner) -> Group | None:
    """The ops and one more as a group, None if they cannot be one call."""
    try:
        return Group.of([*ops, op], [], outliner.purity)
    except Refused:
        return None


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for child in block.operations:
                yield from _blocks(child.operation)
