"""Gradients of branches: the region that was taken is computed again, and then in reverse.

%y = scf.if %c -> ... { %0 = f(%x)  scf.yield %0 } else { ... }
->
%gradient_of_x = scf.if %c -> ... { %0 = f(%x)  ...  scf.yield %gradient } else { ... }
"""

from relax_mlir.bindings import ir, scf
from relax_mlir.gradients.reverse import (
    Adjoint,
    Contributions,
    Reverse,
    vary,
)
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.rewriting import captured_values


def branch(
    op: scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp, adjoint: Adjoint
) -> Contributions:
    """Another one, which yields the gradients of what its regions use."""
    used = [value for value in captured_values(op) if adjoint.wants(value)]
    copy = op.operation.clone()
    reverse = ir.Operation.create(
        op.operation.name,
        results=[value.type for value in used],
        operands=list(op.operation.operands),
        attributes=dict(op.operation.attributes.items()),
        regions=len(op.operation.regions),
    )
    for old, region in zip(copy.regions, reverse.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(region)
            _turn(block, used, adjoint)
    copy.erase()
    yield from zip(used, reverse.results, strict=True)


def _turn(block: ir.Block, used: list[ir.Value], adjoint: Adjoint) -> None:
    """Goes on in reverse at the end of a block, and yields the gradients of used values."""
    *ops, end = block.operations
    varied = set(used)
    vary(ops, varied)
    with ir.InsertionPoint(end), end.location:
        reverse = Reverse(varied, adjoint.context)
        for value, seed in zip(end.operation.operands, adjoint.seeds, strict=True):
            if seed is not None:
                reverse.add(value, seed)
        reverse.run(ops)
        known = [reverse.of(value) for value in used]
        scf.YieldOp(
            [zeros_like(value) if g is None else g for value, g in zip(used, known, strict=True)]
        )
    end.operation.erase()
