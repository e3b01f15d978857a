"""Proofs that an index of a leaf is inside of a dim, so that it needs no clamp."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relax_mlir.bindings import ir, scf
from relax_mlir.symbolic import Expr, Facts, as_expr, at_most

Ends = Mapping[ir.Value, Expr]
"""Indices that are not negative, and what each is below."""
_KEEP = {"arith.maxsi": any, "arith.minsi": all}
"""Ops whose result is not negative if any of their operands, or all, are not."""


_MAX_DEPTH = 100
"""The longest chains of ops that are followed."""


def is_inside(picked: ir.Value, extent: Expr, ends: Ends, facts: Facts) -> bool:
    """Whether an index is proved to be one of a dim.

    A sum with a constant is asked here alone: what is below an extent has not wrapped.
    """
    base, step = _shifted(picked)
    proofs = _Proofs(ends)
    return proofs.is_not_negative(base) and any(
        at_most(end + step, extent, facts).proved for end in proofs.bounds(base)
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


@dataclass
class _Proofs:
    """What is proved of values, each once: many may use one."""

    ends: Ends
    signs: dict[ir.Value, bool] = field(default_factory=dict)
    known: dict[ir.Value, tuple[Expr, ...]] = field(default_factory=dict)

    def is_not_negative(self, value: ir.Value, depth: int = 0) -> bool:
        """Whether a value is proved to be 0 or more."""
        if value not in self.signs:
            self.signs[value] = depth < _MAX_DEPTH and self._sign(value, depth + 1)
        return self.signs[value]

    def bounds(self, value: ir.Value, depth: int = 0) -> tuple[Expr, ...]:
        """What an index is proved to be below."""
        if value not in self.known:
            made = self._bounds(value, depth + 1) if depth < _MAX_DEPTH else []
            self.known[value] = tuple(dict.fromkeys(made))
        return self.known[value]

    def _sign(self, value: ir.Value, depth: int) -> bool:
        if value in self.ends:
            return True
        owner = value.owner
        if isinstance(owner, ir.Block):
            return _is_round(value) and self.is_not_negative(owner.owner.lowerBound, depth)
        if owner.name in _KEEP:
            return _KEEP[owner.name](self.is_not_negative(x, depth) for x in owner.operands)
        if owner.name == "arith.remsi":  # it has the sign of its left side
            return self.is_not_negative(owner.operands[0], depth)
        constant = _constant(value)
        return constant is not None and constant >= 0

    def _bounds(self, value: ir.Value, depth: int) -> list[Expr]:
        if value in self.ends:
            return [self.ends[value]]
        owner = value.owner
        if isinstance(owner, ir.Block):
            upper = self.bounds(_last_end(owner.owner), depth) if _is_round(value) else ()
            return [bound - 1 for bound in upper]
        if owner.name == "arith.minsi":
            return [bound for x in owner.operands for bound in self.bounds(x, depth)]
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
