"""Proofs that an index of a leaf is inside of a dim, so that it needs no clamp."""

from collections.abc import Mapping

from relax_mlir.bindings import ir, scf
from relax_mlir.symbolic import Expr, Facts, as_expr, at_most

Ends = Mapping[ir.Value, Expr]
"""Indices that are not negative, and what each is below."""
_KEEP = {"arith.maxsi": any, "arith.minsi": all}
"""Ops whose result is not negative if any of their operands, or all, are not."""


def is_inside(picked: ir.Value, extent: Expr, ends: Ends, facts: Facts) -> bool:
    """Whether an index is proved to be one of a dim.

    A sum with a constant is asked here alone: what is below an extent has not wrapped.
    """
    base, step = _shifted(picked)
    return _is_not_negative(base, ends) and any(
        at_most(end + step, extent, facts).proved for end in _bounds(base, ends)
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
    constant = _constant(value)
    return [] if constant is None else [as_expr(constant + 1)]


def _last_end(loop: scf.ForOp) -> ir.Value:
    """Where a loop ends if it has a round: not where it begins."""
    end = loop.upperBound
    if isinstance(end.owner, ir.Block) or end.owner.name != "arith.select":
        return end
    rest = [x for x in end.owner.operands[1:] if x != loop.lowerBound]
    return rest[0] if len(rest) == 1 else end


def _shifted(value: ir.Value) -> tuple[ir.Value, int]:
    """An index and the constant, not negative, that is added to it."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name in ("arith.addi", "arith.subi"):
        left, right = owner.operands
        sign = 1 if owner.name == "arith.addi" else -1
        for base, step in ((left, right), (right, left))[: 1 + (sign > 0)]:
            constant = _constant(step)
            if constant is not None and constant * sign >= 0:
                return base, constant * sign
    return value, 0


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
