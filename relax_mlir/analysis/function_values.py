"""Which closures a function value may be, through branches, loops and casts."""

from collections.abc import Iterator

from relax_mlir.bindings import ir, scf
from relax_mlir.dialects.graph import MakeClosureOp, MatchCastOp
from relax_mlir.rewriting import defining_op


class UnknownFunction(Exception):
    """A function that no `graph.make_closure` of the same function makes."""


def maker_of(value: ir.Value) -> MakeClosureOp | None:
    """What made a function, if nothing decides which one it is."""
    return defining_op(value, MakeClosureOp)


def makers_of(value: ir.Value) -> list[MakeClosureOp]:
    """All that may have made a function; raises UnknownFunction if it may come from elsewhere."""
    result: dict[ir.Operation, MakeClosureOp] = {}
    seen: set[ir.Value] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        made = maker_of(value)
        if made is not None:
            result[made.operation] = made
        elif value not in seen:
            seen.add(value)
            waiting += _sources(value)
    return list(result.values())


def _sources(value: ir.Value) -> Iterator[ir.Value]:
    """The values that one is, depending on branches and rounds."""
    if isinstance(value, ir.BlockArgument):
        yield from _carried(value)
        return
    op, index = value.owner.opview, ir.OpResult(value).result_number
    if isinstance(op, MatchCastOp):
        yield op.input
    elif isinstance(op, scf.ForOp):
        yield op.operands[3 + index]
        yield _end(op, 0).operands[index]
    elif isinstance(op, scf.WhileOp):
        yield _end(op, 0).operands[1 + index]
    elif isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp):
        for region in range(len(op.operation.regions)):
            yield _end(op, region).operands[index]
    else:
        raise UnknownFunction


def _carried(value: ir.BlockArgument) -> Iterator[ir.Value]:
    """What a loop hands to the argument of a block."""
    loop, index = value.owner.owner.opview, value.arg_number
    if isinstance(loop, scf.ForOp) and index > 0:
        yield loop.operands[2 + index]
        yield _end(loop, 0).operands[index - 1]
    elif isinstance(loop, scf.WhileOp) and value.owner == loop.operation.regions[0].blocks[0]:
        yield loop.operands[index]
        yield _end(loop, 1).operands[index]
    elif isinstance(loop, scf.WhileOp):
        yield _end(loop, 0).operands[1 + index]
    else:
        raise UnknownFunction


def _end(op: ir.OpView, region: int) -> ir.OpView:
    operations = op.operation.regions[region].blocks[0].operations
    return operations[len(operations) - 1]
