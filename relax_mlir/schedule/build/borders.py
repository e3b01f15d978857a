"""Vectors of clamped indices: one branch for the loads of a loop's body, not one for each.

%x = scf.if %a { load } else { gather } {tir.border}       scf.if %a and %b {
%y = scf.if %b { load } else { gather } {tir.border}   ->    load, load, compute, store
compute, store                                             } else { all as it was }
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, func, ir, scf

BORDER = "tir.border"
"""Marks a branch whose condition fails only at borders."""


def join_borders(function: func.FuncOp) -> None:
    """Gives bodies with such branches a version for the inside, which has none of them."""
    blocks: dict[ir.Block, None] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if BORDER in op.attributes:
            blocks[op.block] = None
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    for block in blocks:
        _split(block)


def _split(block: ir.Block) -> None:
    """Versions a body by the conditions that can be told at its beginning."""
    *body, terminator = [op.operation for op in block.operations]
    inside: list[ir.Operation] = []
    early: dict[ir.Operation, None] = {}
    for op in body:
        if BORDER in op.attributes and (needed := _slice(op.operands[0], block)) is not None:
            inside.append(op)
            early |= dict.fromkeys(needed)
    if not inside:
        return
    rest = [op for op in body if op not in early]
    for op in [op for op in body if op in early]:
        op.move_before(rest[0])
    results = [
        x for x in terminator.operands
        if not isinstance(x.owner, ir.Block) and x.owner.operation in rest
    ]  # fmt: skip
    with ir.InsertionPoint(terminator), terminator.location:
        condition = inside[0].operands[0]
        for op in inside[1:]:
            condition = arith.AndIOp(condition, op.operands[0]).result
        branch = scf.IfOp(condition, [x.type for x in results], has_else=True)
    with ir.InsertionPoint(branch.then_block), terminator.location:
        values = _copies(rest, set(inside))
        scf.YieldOp([values.get(x, x) for x in results])
    with ir.InsertionPoint(branch.else_block), terminator.location:
        end = scf.YieldOp(results)
    for op in rest:
        op.move_before(end.operation)
    for i, x in enumerate(terminator.operands):
        if x in results:
            terminator.operands[i] = branch.results[results.index(x)]


def _slice(value: ir.Value, block: ir.Block) -> list[ir.Operation] | None:
    """The ops of a block that a value needs; None if they are more than arithmetic."""
    needed: dict[ir.Operation, None] = {}
    rest = [value]
    while rest:
        source = rest.pop().owner
        if isinstance(source, ir.Block):
            continue
        owner = source.operation
        if owner.block != block or owner in needed:
            continue
        if not owner.name.startswith("arith."):
            return None
        needed[owner] = None
        rest += owner.operands
    return list(needed)


def _copies(ops: Sequence[ir.Operation], inside: set[ir.Operation]) -> dict[ir.Value, ir.Value]:
    """Clones ops, of branches the first side; returns the new values of the old ones."""
    values: dict[ir.Value, ir.Value] = {}
    for op in ops:
        if op in inside:
            *loads, end = [x.operation for x in op.regions[0].blocks[0].operations]
            values |= _copies_of(loads, values)
            new = [values.get(x, x) for x in end.operands]
            values |= dict(zip(op.results, new, strict=True))
        else:
            values |= _copies_of([op], values)
    return values


def _copies_of(
    ops: Sequence[ir.Operation], values: dict[ir.Value, ir.Value]
) -> dict[ir.Value, ir.Value]:
    made = dict(values)
    for op in ops:
        copy = op.clone().operation

        def visit(inner: ir.Operation) -> ir.WalkResult:
            for i, x in enumerate(inner.operands):
                if x in made:
                    inner.operands[i] = made[x]
            return ir.WalkResult.ADVANCE

        copy.walk(visit)
        made |= dict(zip(op.results, copy.results, strict=True))
    return made
