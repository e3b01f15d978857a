"""Lowers structured control flow to blocks and branches with block arguments.

    %r = scf.if %c -> T { ... yield %a } else { ... yield %b }
      ->
          cond_br %c, ^then, ^else
    then: ...
          br ^after(%a)
    else: ...
          br ^after(%b)
    after(%r):

`passed.py` maps values to block arguments. Arena memory of an iteration is released at its end.
"""

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects.graph import CallDpsOp
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import walk_ops

from .function import HostFunction
from .memory import mark_arena, release_arena
from .passed import Passed
from .scalars import refuse_if


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
    """Runs the region of the case of an index, or the default one."""
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
    """Emits a region, which may be missing, and passes its yielded values to a block."""
    operands: list[ir.Value] = []
    for block in region.blocks:
        with host.region(block, host.scope.inside()) as terminator:
            operands = passed.operands(terminator.operands)
    host.out.branch(after, operands)


def for_(host: HostFunction, op: scf.ForOp) -> None:
    """Runs a region for each index of a range."""
    out, block = host.out, op.operation.regions[0].blocks[0]
    below = "ult" if "unsignedCmp" in op.attributes else "slt"
    lower, upper, step = (host.scalar(op, value) for value in op.operands[:3])
    _require_positive(host, op, step, below)
    index, *carried = block.arguments
    passed = Passed(host, op, carried)
    head = out.new_block([lower.type, *passed.types])
    out.branch(head, [lower, *passed.operands(op.operands[3:])])
    out.enter(head)
    at, *arguments = head.arguments
    after, body = out.new_block(), out.new_block()
    out.branch_if(out.compare(below, at, upper), body, after)
    out.enter(body)
    host.scope.scalars[index] = at
    passed.define(arguments)
    mark = mark_arena(host, op)
    with host.region(block, host.scope.inside()) as terminator:
        operands = passed.operands(terminator.operands)
    release_arena(host, mark)
    # The last step may be partial: the upper bound fits the type, but the next index may not.
    left = arith.subi(upper, at, ip=out.at)
    next_ = arith.addi(at, arith.minui(step, left, ip=out.at), ip=out.at)
    _poll(host, op)
    out.branch(head, [next_, *operands])
    out.enter(after)
    Passed(host, op, op.results).define(arguments)


def _require_positive(host: HostFunction, op: scf.ForOp, step: ir.Value, below: str) -> None:
    """Returns with an error if a loop's step is not positive; checks a constant at compile time."""
    maker = op.operands[2].owner
    if isinstance(maker, ir.Operation | ir.OpView) and isinstance(maker.opview, arith.ConstantOp):
        if ir.IntegerAttr(maker.opview.attributes["value"]).value > 0:
            return
    not_above = host.out.compare(below.replace("t", "e"), step, host.out.integer(0, step.type))
    refuse_if(host, op, not_above, "has a step that is not positive")


def _poll(host: HostFunction, op: scf.ForOp | scf.WhileOp) -> None:
    """Returns at the end of an iteration if the host program requests an interrupt."""
    weight = host.out.integer(64 if walk_ops(op, CallDpsOp) else 1, host.out.i32)
    (status,) = host.out.call_runtime("rx_poll", [host.out.context, weight])
    host.out.fail_unless_zero(status)


def while_(host: HostFunction, op: scf.WhileOp) -> None:
    """Runs two regions alternately while the condition of the first one holds."""
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
    _poll(host, op)
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
