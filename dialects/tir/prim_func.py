"""A view of a `func.func` as a tensor program in destination-passing style."""

from dataclasses import dataclass

from relax_mlir.bindings import func, ir

from .dialect import PatternAttr

PRIM_FUNC = "tir.prim_func"
NUM_OUTS = "tir.num_outs"
PATTERN = "tir.pattern"
SCHEDULED = "tir.scheduled"
SCHEDULE_HINT = "tir.schedule_hint"
SYMBOL = "tir.sym"
NOT_POSITIVE = "tir.not_positive"
FUNCTION = "tir.function"
ZERO_PADDED = "tir.zero_padded"
BLOCK = "tir.block"
"""On the size of a task's block: any size will do."""
SORT = "tir.sort"
"""On a program: how it orders lines."""

PATTERNS = ("element_wise", "broadcast", "injective", "reduction", "out_fusible", "opaque")
"""Compute patterns, from the easiest to fuse to the hardest (paper §4.2)."""


@dataclass(frozen=True)
class PrimFunc:
    """A function that takes inputs, then outputs to fill, then index values of symbols.

    Before scheduling it works on tensors and returns the filled outputs; afterwards it works
    on memrefs and returns nothing.
    """

    op: func.FuncOp

    @staticmethod
    def is_prim_func(op: ir.OpView) -> bool:
        """True for a `func.func` with the attribute `tir.prim_func`."""
        return isinstance(op, func.FuncOp) and PRIM_FUNC in op.attributes

    @property
    def name(self) -> str:
        """Symbol name."""
        return self.op.name.value

    @property
    def num_outs(self) -> int:
        """Number of output parameters."""
        return self.op.attributes[NUM_OUTS].value

    @property
    def arguments(self) -> list[ir.Value]:
        """All block arguments, in order."""
        return list(self.op.entry_block.arguments)

    @property
    def sym_args(self) -> list[ir.Value]:
        """The trailing index arguments."""
        return [a for a in self.arguments if isinstance(a.type, ir.IndexType)]

    @property
    def outs(self) -> list[ir.Value]:
        """The parameters that are filled."""
        tensors = self._tensors
        return tensors[len(tensors) - self.num_outs :]

    @property
    def ins(self) -> list[ir.Value]:
        """The parameters that are read."""
        tensors = self._tensors
        return tensors[: len(tensors) - self.num_outs]

    @property
    def _tensors(self) -> list[ir.Value]:
        return [a for a in self.arguments if not isinstance(a.type, ir.IndexType)]

    @property
    def sym_names(self) -> list[str]:
        """Symbols that the index arguments carry, in order."""
        attributes = self.op.arg_attrs
        names = [attributes[i] for i in range(len(self.arguments))] if attributes else []
        return [ir.StringAttr(a[SYMBOL]).value for a in names if SYMBOL in ir.DictAttr(a)]

    @property
    def is_scheduled(self) -> bool:
        """True once the body is loops over memrefs."""
        return SCHEDULED in self.op.attributes

    @property
    def schedule_hint(self) -> str | None:
        """What shape of program the body holds, where the producer said so."""
        attributes = self.op.attributes
        return attributes[SCHEDULE_HINT].value if SCHEDULE_HINT in attributes else None

    @property
    def pattern(self) -> str | None:
        """Compute pattern, or None before `relax-annotate-pattern`."""
        if PATTERN not in self.op.attributes:
            return None
        return ir.StringAttr(PatternAttr(self.op.attributes[PATTERN]).kind).value

    def set_pattern(self, kind: str) -> None:
        """Records the compute pattern, one of `PATTERNS`."""
        assert kind in PATTERNS, kind
        self.op.attributes[PATTERN] = PatternAttr.get(ir.StringAttr.get(kind))


def prim_funcs(module: ir.Operation | ir.OpView) -> list[PrimFunc]:
    """Returns the tensor programs of a module, in order."""
    block = module.regions[0].blocks[0]
    return [PrimFunc(op) for op in block.operations if PrimFunc.is_prim_func(op)]
