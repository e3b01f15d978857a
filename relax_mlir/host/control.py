"""What structured control flow becomes: blocks and branches, which hand values on.

    %r = scf.if %c -> T { ... yield %a } else { ... yield %b }
      ->
          cond_br %c, ^then, ^else
    then: ...
          br ^after(%a)
    else: ...
          br ^after(%b)
    after(%r):

A tensor is handed on as its address and those of its dims that nothing says where it arrives. What
the arena gives in a round of a loop ends with the round.
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.passes import PassFailure

from .function import HostFunction
from .memory import mark_arena, release_arena
from .scalars import scalar_type
from .scope import HostTensor, Size


class Passed:
    """Values of a graph function as the arguments of a block, in the scope that is reached now."""

    def __init__(self, host: HostFunction, op: ir.OpView, values: Sequence[ir.Value]) -> None:
        self._host, self._op, self._values = host, op, values
        self._dims = [self._known_dims(value) for value in values]
        self.types = [
            type_
            for value, dims in zip(values, self._dims, strict=True)
            for type_ in self._types(value, dims)
        ]

    def operands(self, sources: Sequence[ir.Value]) -> list[ir.Value]:
        """The operands of a jump to the block, which hand on other values as these."""
        found: list[ir.Value] = []
        for source, dims in zip(sources, self._dims, strict=True):
            if dims is None:
                found.append(self._host.scalar(self._op, source))
                continue
            tensor = self._host.tensor(source)
            found.append(tensor.pointer)
            open_ = [got for got, dim in zip(tensor.dims, dims, strict=True) if dim is None]
            found += self._host.integers(self._op, open_)
        return found

    def define(self, arguments: Sequence[ir.Value]) -> None:
        """Says what the values are once the block has been entered."""
        rest = iter(arguments)
        for value, dims in zip(self._values, self._dims, strict=True):
            first = next(rest)
            if dims is None:
                self._host.scope.scalars[value] = first
                continue
            sizes = tuple(next(rest) if dim is None else dim for dim in dims)
            element = self._host.annotation(value).element
            self._host.define(value, HostTensor(first, sizes, element))

    def _known_dims(self, value: ir.Value) -> tuple[Size | None, ...] | None:
        """The dims of a tensor that its type says, with None for others; None for a scalar."""
        if scalar_type(value.type) is not None:
            return None
        if not isinstance(value.type, ir.RankedTensorType):
            raise PassFailure(self._op, f"hands on a value of type '{value.type}'")
        known = self._host.scope.symbols.keys()
        dims = self._host.annotation(value).dims or ()
        return tuple(dim if dim is not None and dim.symbols <= known else None for dim in dims)

    def _types(self, value: ir.Value, dims: Sequence[Size | None] | None) -> list[ir.Type]:
        out, scalar = self._host.out, scalar_type(value.type)
        if dims is None:
            return [] if scalar is None else [scalar]
        return [out.pointer, *(out.i64 for dim in dims if dim is None)]


def if_(host: HostFunction, op: scf.IfOp) -> None:
    """Runs one of two regions."""
    out, passed = host.out, Passed(host, op, op.results)
    condition = host.scalar(op, op.operands[0])
    after, otherwise, then = out.new_block(passed.types), out.new_block(), out.new_block()
    out.branch_if(condition, then, otherwise)
    for start, region in zip((then, otherwise), op.operation.regions, strict=True):
        out.enter(start)
        _yield(host, region, after, passed)
    out.enter(after)
    passed.define(after.arguments)


def index_switch(host: HostFunction, op: scf.IndexSwitchOp) -> None:
    """Runs the region of the case that an index is, or the default one."""
    out, passed = host.out, Passed(host, op, op.results)
    index = host.scalar(op, op.operands[0])
    default, *cases = op.operation.regions
    after = out.new_block(passed.types)
    for case, region in zip(ir.DenseI64ArrayAttr(op.attributes["cases"]), cases, strict=True):
        other, chosen = out.new_block(), out.new_block()
        out.branch_if(out.compare("eq", index, out.integer(case)), chosen, other)
        out.enter(chosen)
        _yield(host, region, after, passed)
        out.enter(other)
    _yield(host, default, after, passed)
    out.enter(after)
    passed.define(after.arguments)


def _yield(host: HostFunction, region: ir.Region, after: ir.Block, passed: Passed) -> None:
    """Emits a region, which may be missing, and hands what it yields to a block."""
    operands: list[ir.Value] = []
    for block in region.blocks:
        with host.region(block, host.scope.inside()) as terminator:
            operands = passed.operands(terminator.operands)
    host.out.branch(after, operands)


def for_(host: HostFunction, op: scf.ForOp) -> None:
    """Runs a region for each index of a range."""
    out, block = host.out, op.operation.regions[0].blocks[0]
    if not isinstance(block.arguments[0].type, ir.IndexType) or "unsignedCmp" in op.attributes:
        raise PassFailure(op, "counts in another type than index, which host code does not")
    lower, upper, step = (host.scalar(op, value) for value in op.operands[:3])
    index, *carried = block.arguments
    passed = Passed(host, op, carried)
    head = out.new_block([out.i64, *passed.types])
    out.branch(head, [lower, *passed.operands(op.operands[3:])])
    out.enter(head)
    at, *arguments = head.arguments
    after, body = out.new_block(), out.new_block()
    out.branch_if(out.compare("slt", at, upper), body, after)
    out.enter(body)
    host.scope.scalars[index] = at
    passed.define(arguments)
    mark = mark_arena(host, op)
    with host.region(block, host.scope.inside()) as terminator:
        operands = passed.operands(terminator.operands)
    release_arena(host, mark)
    # The last step may be a part of one: 64 bits hold the upper end, but not more for sure.
    left = arith.subi(upper, at, ip=out.at)
    next_ = arith.addi(at, arith.minsi(step, left, ip=out.at), ip=out.at)
    out.branch(head, [next_, *operands])
    out.enter(after)
    Passed(host, op, op.results).define(arguments)


def while_(host: HostFunction, op: scf.WhileOp) -> None:
    """Runs two regions in turns until the first one has enough."""
    out = host.out
    before, after = (region.blocks[0] for region in op.operation.regions)
    entering, leaving = (Passed(host, op, block.arguments) for block in (before, after))
    head = out.new_block(entering.types)
    out.branch(head, entering.operands(op.operands))
    out.enter(head)
    entering.define(head.arguments)
    mark = mark_arena(host, op)
    with host.region(before, host.scope.inside()) as terminator:
        condition = host.scalar(op, terminator.operands[0])
        handed = leaving.operands(list(terminator.operands)[1:])
    done, body = out.new_block(leaving.types), out.new_block(leaving.types)
    out.branch_if(condition, body, done, handed)
    out.enter(body)
    leaving.define(body.arguments)
    with host.region(after, host.scope.inside()) as terminator:
        operands = entering.operands(terminator.operands)
    release_arena(host, mark)
    out.branch(head, operands)
    out.enter(done)
    release_arena(host, mark)
    Passed(host, op, op.results).define(done.arguments)


def dim(host: HostFunction, op: tensor.DimOp) -> None:
    """A dim of a tensor as an index."""
    axis = op.operands[1].owner
    if isinstance(axis, ir.Block) or not isinstance(axis.opview, arith.ConstantOp):
        raise PassFailure(op, "asks for a dim that is not constant")
    dims = host.tensor(op.operands[0]).dims
    index = ir.IntegerAttr(axis.attributes["value"]).value
    if not 0 <= index < len(dims):
        raise PassFailure(op, f"asks for dim {index} of a tensor of rank {len(dims)}")
    host.scope.scalars[op.result] = host.integer(op, dims[index])
