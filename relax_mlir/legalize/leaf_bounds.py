"""Proofs that an index of a leaf is inside of a dim, so that it needs no clamp."""

from collections.abc import Mapping

from relax_mlir.bindings import ir, scf
from relax_mlir.symbolic import Expr, Facts, as_expr, at_most

Ends = Mapping[ir.Value, Expr]
"""Indices that are not negative, and what each is below."""
_KEEP = {"arith.maxsi": any, "arith.minsi": all}
"""Ops whose result is not negative if any of their operands, or all, are not."""


def is_inside(picked: ir.Value, extent: Expr, ends: Ends, facts: Facts) -> bool:
    """Whether an index is proved to be one of a dim."""
    return _is_not_negative(picked, ends) and any(
        at_most(end, extent, facts).proved for end in _bounds(picked, ends)
    )


def is_read(picked: ir.Value) -> bool:
    """Whether an index is an element of a tensor, of another type or not."""
    owner = picked.owner
    while not isinstance(owner, ir.Block) and owner.name.startswith("arith.index_cast"):
        picked = owner.operands[0]
        owner = picked.owner
    if not isinstance(owner, ir.Block) and owner.name == "scf.if":  # as it is clamped itself
        return True
    return not isinstance(owner, ir.Block) and owner.name == "tensor.extract"


def _is_not_negative(value: ir.Value, ends: Ends) -> bool:
    if value in ends:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        return _is_round(value) and _is_not_negative(owner.owner.lowerBound, ends)
    if owner.name in _KEEP:
        return _KEEP[owner.name](_is_not_negative(x, ends) for x in owner.operands)
    if owner.name == "arith.remsi":  # it has the sign of its left side
        return _is_not_negative(owner.operands[0], ends)
    if (shifted := _shifted(value)) is not None:
        return shifted[1] >= 0 and _is_not_negative(shifted[0], ends)
    constant = _constant(value)
    return constant is not None and constant >= 0


def _bounds(value: ir.Value, ends: Ends) -> list[Expr]:
    """What an index is proved to be below."""
    if value in ends:
        return [ends[value]]
    owner = value.owner
    if isinstance(owner, ir.Block):
        upper = _bounds(_last_end(owner.owner), ends) if _is_round(value) else []
        return [bound - 1 for bound in upper]
    if owner.name == "arith.minsi":
        return [bound for x in owner.operands for bound in _bounds(x, ends)]
    if owner.name == "arith.remsi":
        divisor = _constant(owner.operands[1])
        return [as_expr(divisor)] if divisor is not None and divisor > 0 else []
    if (shifted := _shifted(value)) is not None:
        return [bound + shifted[1] for bound in _bounds(shifted[0], ends)]
    constant = _constant(value)
    return [] if constant is None else [as_expr(constant + 1)]


def _last_end(loop: scf.ForOp) -> ir.Value:
    """Where a loop ends if it has a round: not where it begins."""
    end = loop.upperBound
    if isinstance(end.owner, ir.Block) or end.owner.name != "arith.select":
        return end
    rest = [x for x in end.owner.operands[1:] if x != loop.lowerBound]
    return rest[0] if len(rest) == 1 else end


def _shifted(value: ir.Value) -> tuple[ir.Value, int] | None:
    """An index and the constant that is added to it.

    A sum that is below an extent has not wrapped, so neither has one that is proved to be.
    """
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = owner.operands
    if (step := _constant(right)) is not None:
        return left, step if owner.name == "arith.addi" else -step
    if owner.name == "arith.addi" and (step := _constant(left)) is not None:
        return right, step
    return None


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    is_index = isinstance(value.type, ir.IndexType) and not isinstance(owner, ir.Block)
    if not is_index or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def _is_round(value: ir.Value) -> bool:
    """Whether a block's argument is the index of a loop."""
    block = value.owner
    return isinstance(block.owner, scf.ForOp) and value == block.arguments[0]
