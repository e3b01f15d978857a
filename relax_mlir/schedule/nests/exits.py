"""Scalar loops whose rounds do nothing from some round on, which end there.

scf.for %i = %a to %b iter_args(%c = %x) {       scf.while (%i = %a, %c = %x) {
  %done = cmp %c, ..                               condition %i < %b and not (cmp %c, ..)
  %y = scf.if %done { %c } else { .. }     ->    } do {
  yield %y                                         .. ; yield %i + 1, %y
}                                                }
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, func, ir, scf


def leave_early(function: func.FuncOp) -> None:
    """Makes such loops of one scalar `scf.while`, inner ones first."""
    loops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.for":
            loops.append(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    for op in loops:
        loop = op.opview
        assert isinstance(loop, scf.ForOp)
        if (branch := _branch_of(loop)) is not None:
            with ir.InsertionPoint(op), op.location:
                _leave(loop, branch)


def _branch_of(loop: scf.ForOp) -> scf.IfOp | None:
    """The branch of a loop whose first side is that nothing changes any more."""
    *body, terminator = list(loop.body.operations)
    if len(loop.initArgs) != 1 or not body or not isinstance(body[-1], scf.IfOp):
        return None
    branch, carried = body[-1], loop.inner_iter_args[0]
    first = list(branch.then_block.operations)
    keeps = len(first) == 1 and list(first[0].operands) == [carried]
    if not keeps or list(terminator.operands) != list(branch.results):
        return None
    known = {carried}
    for op in body[:-1]:
        inside = [x for x in op.operands if _is_in(x, loop.body)]
        if not op.operation.name.startswith("arith.") or not known.issuperset(inside):
            return None
        known.update(op.results)
    return branch


def _is_in(value: ir.Value, block: ir.Block) -> bool:
    owner = value.owner
    return owner == block if isinstance(owner, ir.Block) else owner.operation.block == block


def _leave(loop: scf.ForOp, branch: scf.IfOp) -> None:
    """Replaces a loop at the insertion point."""
    index, carried = loop.induction_variable, loop.inner_iter_args[0]
    types = [index.type, carried.type]
    made = scf.WhileOp(types, [loop.lowerBound, loop.initArgs[0]])
    here = [loop.location] * 2
    before = made.before.blocks.append(*types, arg_locs=here)
    after = made.after.blocks.append(*types, arg_locs=here)
    checks = list(loop.body.operations)[:-2]
    with ir.InsertionPoint(before):
        at, value = before.arguments
        more = arith.cmpi(arith.CmpIPredicate.slt, at, loop.upperBound)
        done = _copies(checks, carried, value).get(branch.condition, branch.condition)
        goes_on = arith.xori(done, arith.constant(done.type, 1))
        scf.ConditionOp(arith.andi(more, goes_on), [at, value])
    with ir.InsertionPoint(after):
        at, value = after.arguments
        *body, end = list(branch.else_block.operations)
        last = scf.YieldOp([arith.addi(at, loop.step), end.operands[0]])
    for op in [*checks, *body]:
        op.operation.move_before(last.operation)
    index.replace_all_uses_with(at)
    carried.replace_all_uses_with(value)
    loop.results[0].replace_all_uses_with(made.results[1])
    loop.operation.erase()


def _copies(ops: Sequence[ir.OpView], old: ir.Value, new: ir.Value) -> dict[ir.Value, ir.Value]:
    """Clones scalar ops at the insertion point, with one value instead of another."""
    values = {old: new}
    for op in ops:
        copy = op.operation.clone().operation
        for i, x in enumerate(copy.operands):
            copy.operands[i] = values.get(x, x)
        values |= dict(zip(op.results, copy.results, strict=True))
    return values
