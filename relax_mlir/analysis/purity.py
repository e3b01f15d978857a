"""Which ops only make their results: they write nothing, end, and refuse no call.

    op                                            pure if
    an operator, a call of a tensor program       it is not graph.tensor_to_shape
    arith.*, math.*, tensor.*                     it holds no region, and takes any index or divisor
    scf.if, index_switch, execute_region, for     all that they hold is
    graph.call                                    all that the function holds is; it has no facts
    graph.match_cast, require; scf.while          never: they may refuse, or not end

Twice the same is once for more ops: those that refuse a call do it the first time.

What an operator takes for granted about dims is not part of this; see `relax-state-assumptions`.
"""

import re
from dataclasses import dataclass, field

from relax_mlir.bindings import ext, func, ir, scf
from relax_mlir.dialects.graph import (
    AssertOp,
    CallOp,
    GraphOp,
    MatchCastOp,
    RepeatInterleaveOp,
    RequireOp,
    TensorToShapeOp,
)
from relax_mlir.rewriting import walk_ops

from .functions import facts_of
from .signatures import functions_by_name

_VALUES = ("arith", "math", "tensor")
_MAY_REFUSE = re.compile(r"tensor\.(extract|insert)|arith\.(div|rem|floordiv|ceildiv)[su]i")
"""Ops that end a call where an element is negative, an index outside, or a divisor 0."""
_REGIONS = scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp | scf.ForOp
_ENDS = scf.YieldOp | scf.ConditionOp | func.ReturnOp
_REFUSES = AssertOp | MatchCastOp | RepeatInterleaveOp | RequireOp | TensorToShapeOp


def is_pure_operator(op: ir.OpView) -> bool:
    """Whether an op without regions only computes its results from its operands."""
    if _MAY_REFUSE.fullmatch(op.operation.name):
        return False
    if isinstance(op, GraphOp):
        return ext.Pure in type(op)._traits
    dialect = op.operation.name.partition(".")[0]
    return dialect in _VALUES and not len(op.operation.regions)


@dataclass
class Purity:
    """Answers for the ops of one module; what it found of functions is kept."""

    functions: dict[str, func.FuncOp]
    _known: dict[str, bool] = field(default_factory=dict)

    @staticmethod
    def of(module: ir.Operation | ir.OpView) -> "Purity":
        """Reads the functions of a module."""
        return Purity(functions_by_name(module))

    def is_pure(self, op: ir.OpView) -> bool:
        """Whether an op, with all that it holds and calls, only makes its results."""
        if isinstance(op, CallOp):
            return self._is_pure_function(op.callee_name)
        if isinstance(op, _REGIONS):
            blocks = [block for region in op.operation.regions for block in region.blocks]
            return all(self.is_pure(each) for block in blocks for each in block.operations)
        return isinstance(op, _ENDS) or is_pure_operator(op)

    def _is_pure_function(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False  # a recursion need not end
            function = self.functions.get(name)
            self._known[name] = (
                function is not None
                and not function.is_external
                and not len(facts_of(function))
                and all(self.is_pure(op) for op in function.entry_block.operations)
            )
        return self._known[name]

    def is_silent(self, call: CallOp) -> bool:
        """Whether nothing is seen of a call but its results, which are the same each time.

        Another one with the same operands need not run, though the first one may refuse to.
        """
        names, seen = [call.callee_name], set[str]()
        while names:
            name = names.pop()
            function = self.functions.get(name)
            if function is None or function.is_external:
                return False
            seen.add(name)
            for op in walk_ops(function):
                if isinstance(op, CallOp):
                    names += {op.callee_name} - seen
                elif not _is_silent_op(op):
                    return False
        return True


def _is_silent_op(op: ir.OpView) -> bool:
    if isinstance(op, func.FuncOp | scf.WhileOp | _REGIONS | _ENDS | _REFUSES):
        return True
    return op.operation.name.partition(".")[0] in _VALUES or is_pure_operator(op)
