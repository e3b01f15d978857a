"""Which tensors of a graph function share memory, and which memory each op reads and writes.

The *roots* of a value are the values that may have introduced its memory: arguments, constants,
allocations, results of calls. A value that an op forwards has the roots of its operand:

    op                                         its result has the memory of
    graph.view, graph.match_cast               its operand
    call_tir of a program that only reshapes   its operand
    call_tir_inplace, call_library_inplace,
      an index >= 0                            that operand
    call, a result of `graph.inout`            the argument that is updated
    tensor.insert                              the tensor that it inserts into
    scf.if, index_switch, execute_region       what its regions yield
    scf.for, scf.while                         the initial value, and what each iteration yields
    another operator, call or constant         new
    an op of another dialect                   any tensor operand

Two arguments of a function may be taken for different memory: the runtime refuses a call in which
an updated argument overlaps another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, func, ir, scf, tensor
from relax_mlir.dialects.graph import (
    AllocTensorOp,
    CallDpsOp,
    CallOp,
    CallTirOp,
    CopyOp,
    GraphOp,
    InplaceCall,
    MatchCastOp,
    ShapeOfOp,
    StoreOp,
    TensorType,
    ViewOp,
)

from .functions import inout_arguments
from .scopes import scoped_ops
from .symbols import symbols_of

RESHAPE = "tir.reshape"
"""Marks a tensor program that only renames dims, so that a call of it can be a view."""

_PASSES_ON = ViewOp | MatchCastOp
_ONLY_DIMS = ViewOp | MatchCastOp | ShapeOfOp | AllocTensorOp | tensor.DimOp
_REGIONS = scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp | scf.ForOp | scf.WhileOp
_ENDS = scf.YieldOp | scf.ConditionOp


@dataclass(frozen=True)
class Effects:
    """The tensors whose elements an op reads and writes, apart from the ops nested in it."""

    reads: Sequence[ir.Value] = ()
    writes: Sequence[ir.Value] = ()


@dataclass
class Memory:
    """Roots and effects in the graph functions of a module, given its functions by name.

    Results are cached: make a new one after a change of the IR.
    """

    functions: Mapping[str, func.FuncOp]
    _roots: dict[ir.Value, frozenset[ir.Value]] = field(default_factory=dict)

    def roots(self, value: ir.Value) -> frozenset[ir.Value]:
        """The values that may have introduced the memory of a tensor; itself, if it is new."""
        if value not in self._roots:
            result: set[ir.Value] = set()
            seen, stack = {value}, [value]
            while stack:
                current = stack.pop()
                sources = self.sources(current)
                if current in self._roots:
                    result |= self._roots[current]
                elif sources is None:
                    result.add(current)
                else:
                    new = [source for source in sources if source not in seen]
                    seen.update(new)
                    stack += new
            self._roots[value] = frozenset(result)
        return self._roots[value]

    def may_alias(self, a: ir.Value, b: ir.Value) -> bool:
        """Whether two tensors may be the same memory."""
        return not self.roots(a).isdisjoint(self.roots(b))

    def sources(self, value: ir.Value) -> list[ir.Value] | None:
        """The values of which a tensor forwards one; None if its memory is new."""
        if isinstance(value, ir.BlockArgument):
            return carried_into(value)
        op, index = value.owner.opview, ir.OpResult(value).result_number
        if isinstance(op, _PASSES_ON):
            return [op.input]
        if isinstance(op, _REGIONS):
            return _leaving(op, index)
        if isinstance(op, GraphOp):
            if self.is_reshape(op):
                return [op.ins[0]]
            updated = self.updated(op).get(index)
            return None if updated is None else [op.ins[updated]]
        if isinstance(op, arith.ConstantOp):
            return None
        return [operand for operand in op.operands if is_tensor(operand)] or None

    def is_reshape(self, op: ir.OpView) -> bool:
        """Whether the op calls a tensor program that only reshapes."""
        if not isinstance(op, CallTirOp):
            return False
        callee = self.functions.get(op.callee_name)
        return callee is not None and RESHAPE in callee.attributes

    def updated(self, op: ir.OpView) -> dict[int, int]:
        """Maps the results of a call to the operands that they are computed into.

        Indices that are out of range, which `relax-verify` refuses, are left out.
        """
        if isinstance(op, tensor.InsertOp):
            return {0: 1}
        if isinstance(op, InplaceCall):
            count = len(op.ins)
            return {result: index for result, index in enumerate(op.inplace) if 0 <= index < count}
        if isinstance(op, CallOp) and op.callee_name in self.functions:
            return inout_arguments(self.functions[op.callee_name])
        return {}

    def effects(self, op: ir.OpView) -> Effects:
        """What an op itself reads and writes; an update in place does both to its operand."""
        if isinstance(op, CallDpsOp):
            return Effects([*op.sources, *op.updated], op.destinations)
        if isinstance(op, CopyOp):
            return Effects([op.input], [op.destination])
        if isinstance(op, StoreOp):
            return Effects([], [op.destination])
        if isinstance(op, _ONLY_DIMS | _REGIONS | _ENDS) or self.is_reshape(op):
            return Effects()
        operands = [operand for operand in op.operands if is_tensor(operand)]
        return Effects(operands, [op.operands[index] for index in self.updated(op).values()])


def is_tensor(value: ir.Value) -> bool:
    """Whether a value has memory that this analysis tracks."""
    return isinstance(value.type, ir.RankedTensorType | ir.UnrankedTensorType)


def carried_into(argument: ir.BlockArgument) -> list[ir.Value] | None:
    """The values that a block argument may be: of a loop, the initial and the yielded one."""
    block, index = argument.owner, argument.arg_number
    op = block.owner
    op = op.opview if isinstance(op, ir.Operation) else op
    if isinstance(op, scf.ForOp):
        return None if index == 0 else [op.initArgs[index - 1], _end(block).operands[index - 1]]
    if isinstance(op, scf.WhileOp):
        before, after = (region.blocks[0] for region in op.operation.regions)
        if block == before:
            return [op.operands[index], _end(after).operands[index]]
        return [_end(before).operands[index + 1]]
    return None


def _leaving(op: ir.OpView, index: int) -> list[ir.Value]:
    """The values that result `index` of an op with regions may be."""
    blocks = [block for region in op.operation.regions for block in region.blocks]
    if isinstance(op, scf.WhileOp):
        return [_end(blocks[0]).operands[index + 1]]
    ends = [end for end in map(_end, blocks) if isinstance(end, scf.YieldOp)]
    entering = [op.initArgs[index]] if isinstance(op, scf.ForOp) else []
    return entering + [end.operands[index] for end in ends]


def _end(block: ir.Block) -> ir.OpView:
    return block.operations[len(block.operations) - 1]


def returned_allocations(function: func.FuncOp, memory: Memory) -> dict[ir.Value, int]:
    """Maps allocations that are returned without a copy to the index of their result.

    Such an allocation is in the entry block, in no storage, and the only root of the result; the
    result's dims are known where it is allocated.
    """
    end = _end(function.entry_block)
    inout = inout_arguments(function)
    known = {
        op.result: scope.symbols
        for op, scope in scoped_ops(function)
        if isinstance(op, AllocTensorOp)
        and not op.operands
        and op.operation.block == function.entry_block
    }
    returned: dict[ir.Value, int] = {}
    for index, value in enumerate(end.operands):
        if index in inout or not is_tensor(value):
            continue
        annotation = TensorType.of(value)
        root, *others = memory.roots(value)
        names = frozenset(symbols_of([annotation]))
        if not others and root in known and annotation.is_exact and names <= known[root]:
            returned.setdefault(root, index)
    return returned
