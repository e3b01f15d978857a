"""The scopes of symbols, and the facts that hold in them.

    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32>, %c: i1) {   n
      %0 = scf.if %c -> tensor<?xf32> {
        %1 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
        ...                                                                                 n, k
      } else {
        ...                                                                                 n
      }

An argument binds its symbols in the whole function, a match_cast in the rest of its block and the
regions nested there. Facts hold likewise: those of the function everywhere, those of a
`graph.require` in the rest of its block. The region of an `scf.execute_region` runs once, so it is
part of the enclosing block.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import (
    Annotation,
    MatchCastOp,
    RequireOp,
    TensorType,
    annotation_of,
)
from relax_mlir.symbolic import Fact, Facts, const

from .functions import facts_of
from .symbols import bound_symbols, dims_of


@dataclass
class Scope:
    """The symbols and facts at a point of a block; `casts` are those of the block, in order."""

    block: ir.Block
    symbols: frozenset[str]
    facts: Facts
    casts: dict[str, MatchCastOp] = field(default_factory=dict)
    _required: dict[ir.Value | None, RequireOp] = field(default_factory=dict)

    def enter(self, op: ir.OpView) -> None:
        """Advances past an op."""
        if isinstance(op, MatchCastOp):
            names = bound_by(op, self.symbols)
            self.symbols |= names
            self.casts.update(dict.fromkeys(names, op))
            self.facts += asserted_by(op)
        elif isinstance(op, RequireOp) and len(op.facts) == 1:
            self.facts += Facts(op.facts)

    def inside(self, op: ir.OpView, block: ir.Block) -> "Scope":
        """The scope of a block in the op: a copy, unless the block runs once."""
        return self if runs_once(op) else Scope(block, self.symbols, self.facts)

    def require(self, any_of: Sequence[Fact], by: str, location: ir.Location) -> None:
        """Adds a check of the facts, of which one must hold, to this block, as early as possible.

        That is at its beginning, or after the cast that binds the last of the symbols, and after
        earlier requirements there.
        """
        names = frozenset().union(*(fact.symbols for fact in any_of))
        binding = [name for name in self.casts if name in names]
        anchor = self.casts[binding[-1]].result if binding else None
        if anchor in self._required:
            point = ir.InsertionPoint.after(self._required[anchor])
        elif anchor is not None:
            point = ir.InsertionPoint.after(self.casts[binding[-1]])
        else:
            point = ir.InsertionPoint.at_block_begin(self.block)
        with point, location:
            self._required[anchor] = RequireOp.build(any_of, by)
        self.enter(self._required[anchor])


def scoped_ops(function: func.FuncOp) -> Iterator[tuple[ir.OpView, Scope]]:
    """Visits the ops of a function in program order, each with the scope before it.

    The scope is one object: facts that the visitor adds hold for the ops that follow.
    """
    block = function.entry_block
    facts = facts_of(function) + natural_dims(map(annotation_of, function.arguments))
    yield from _visit(block, Scope(block, argument_symbols(function), facts))


def _visit(block: ir.Block, scope: Scope) -> Iterator[tuple[ir.OpView, Scope]]:
    for op in list(block.operations):
        yield op, scope
        scope.enter(op)
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from _visit(inner, scope.inside(op, inner))


def argument_symbols(function: func.FuncOp) -> frozenset[str]:
    """The symbols that the arguments of a function bind."""
    return bound_symbols([annotation_of(argument) for argument in function.arguments])


def bound_by(cast: MatchCastOp, bound: frozenset[str]) -> frozenset[str]:
    """The symbols that a cast binds, `bound` being bound before it."""
    return bound_symbols([annotation_of(cast.result)], bound)


def natural_dims(annotations: Iterable[Annotation]) -> Facts:
    """What holds of symbols since there are tensors of such dims: `n >= m` of a dim `n - m`."""
    dims = [
        dim
        for annotation in annotations
        if isinstance(annotation, TensorType)
        for dim in dims_of(annotation)
        if dim is not None and ((low := dim.range[0]) is None or low < 0)
    ]
    return Facts(tuple(Fact(const(0), "<=", dim) for dim in dict.fromkeys(dims)))


def asserted_by(cast: MatchCastOp) -> Facts:
    """The facts that a cast checks, on symbols that are bound before it."""
    pairs = zip(dims_of(annotation_of(cast.input)), dims_of(annotation_of(cast.result)))
    equal = tuple(
        Fact(target, "==", source)
        for source, target in pairs
        if source is not None and target is not None and source != target
    )
    return Facts(equal) + natural_dims([annotation_of(cast.result)])


def runs_once(op: ir.OpView) -> bool:
    """Whether the op's region runs exactly once, as a dataflow block does."""
    return isinstance(op, scf.ExecuteRegionOp) and len(op.operation.regions[0].blocks) == 1
