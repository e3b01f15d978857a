"""Reductions whose terms a condition chooses: loops that would change nothing are skipped.

%m = andi %near, broadcast %c                 %b = scf.if %c {
scf.for %i iter_args(%a) {                      scf.for %i iter_args(%a) {
  yield %a + select %m, %y, 0         ->          yield %a + select %near, %y, 0
}                                             } } else { %a }

%c is what the loop does not change. The sum has the same bits: it does not begin at -0.0, so it
never is that. A branch for each round, whose lanes may all be unchosen, took longer than it saves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from relax_mlir.bindings import arith, ir, scf

_ZEROS = ("arith.addf", "arith.addi", "arith.ori", "arith.xori")
"""The combiners that 0 does not change."""
_READS = ("arith.", "math.", "memref.load", "vector.load", "vector.broadcast", "vector.maskedload")
"""Prefixes of what rounds may do that are skipped: they store nothing."""


@dataclass(frozen=True)
class _Round:
    """What an innermost loop adds in a round; `nest` are the loops that only go on with the sum."""

    nest: tuple[scf.ForOp, ...]
    choice: arith.SelectOp


def skip_rounds(module: ir.Module) -> bool:
    """Gives reductions of chosen terms branches around loops; returns whether any has one."""
    loops: list[scf.ForOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.for":
            loops.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return any([_skip(sum_) for loop in loops if (sum_ := _round_of(loop)) is not None])


def _round_of(loop: scf.ForOp) -> _Round | None:
    """The chosen term of a loop that reads, combines it, and does nothing else."""
    *body, end = list(loop.body.operations)
    if len(loop.initArgs) != 1 or not all(op.name.startswith(_READS) for op in body):
        return None
    combined = end.operands[0].owner
    if isinstance(combined, ir.Block) or combined.name not in _ZEROS:
        return None
    carried = loop.inner_iter_args[0]
    terms = [x for x in combined.operands if x != carried]
    if len(terms) != 1 or len(list(carried.uses)) != 1 or isinstance(terms[0].owner, ir.Block):
        return None
    choice, nest = terms[0].owner.opview, _nest(loop)
    if not isinstance(choice, arith.SelectOp) or choice.operation.block != loop.body:
        return None
    once = len(list(choice.result.uses)) == len(list(combined.results[0].uses)) == 1
    starts = _bits(nest[-1].initArgs[0])
    zero = _bits(choice.false_value)
    if not once or zero is None or zero != 0.0 or str(zero).startswith("-"):
        return None
    if starts is None or str(starts) == "-0.0":
        return None
    return _Round(tuple(nest), choice)


def _nest(loop: scf.ForOp) -> list[scf.ForOp]:
    """A loop, and those around it that read, and go on with its sum."""
    nest = [loop]
    while True:
        outer = nest[-1].operation.parent.opview
        if not isinstance(outer, scf.ForOp) or len(outer.initArgs) != 1:
            return nest
        *body, end = list(outer.body.operations)
        inner = nest[-1]
        others = [op for op in body if op.operation != inner.operation]
        goes_on = list(inner.initArgs) == list(outer.inner_iter_args)
        is_all = list(end.operands) == list(inner.results)
        reads = all(op.name.startswith(_READS) for op in others)
        once = len(list(outer.inner_iter_args[0].uses)) == 1
        if not (goes_on and is_all and reads and once):
            return nest
        nest.append(outer)


def _bits(value: ir.Value) -> float | int | None:
    """The constant in all lanes of a value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr):
        return attribute.value
    return None


def _conditions(mask: ir.Value) -> list[ir.Value]:
    """The conditions all of which a mask needs, each once."""
    parts, rest, seen = [], [mask], {mask}
    while rest:
        value = rest.pop()
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.andi":
            parts.append(value)
            continue
        new = [operand for operand in owner.operands if operand not in seen]
        seen.update(new)
        rest += reversed(dict.fromkeys(new))
    return parts


def _skip(sum_: _Round) -> bool:
    """Asks around loops what they do not change, and no longer in rounds; whether there is any."""
    left, around = [], dict[scf.ForOp, list[ir.Value]]()
    for condition in _conditions(sum_.choice.condition):
        asked = _scalar(condition)
        outside = [x for x in sum_.nest if asked is not None and not _is_within(asked, x)]
        if asked is not None and outside:
            around.setdefault(outside[-1], []).append(asked)
        else:
            left.append(condition)
    for loop, asked_here in around.items():
        _skip_loop(loop, asked_here)
    if around:
        _choose_by(sum_.choice, left)
    return bool(around)


def _skip_loop(loop: scf.ForOp, conditions: Sequence[ir.Value]) -> None:
    """Runs a loop only if conditions hold; if not, what it carries is what it began with."""
    with loop.location, ir.InsertionPoint(loop):
        whole = reduce(arith.andi, conditions)
        branch = scf.IfOp(whole, [loop.results[0].type], has_else=True)
    loop.results[0].replace_all_uses_with(branch.results[0])
    with loop.location, ir.InsertionPoint(branch.else_block):
        scf.YieldOp([loop.initArgs[0]])
    with loop.location, ir.InsertionPoint(branch.then_block):
        end = scf.YieldOp([loop.results[0]])
    loop.operation.move_before(end.operation)


def _scalar(condition: ir.Value) -> ir.Value | None:
    """What all lanes of a condition are, or None."""
    if not isinstance(condition.type, ir.VectorType):
        return condition
    owner = condition.owner
    if isinstance(owner, ir.Block) or owner.name != "vector.broadcast":
        return None
    source = owner.operands[0]
    return None if isinstance(source.type, ir.VectorType) else source


def _is_within(value: ir.Value, loop: scf.ForOp) -> bool:
    """Whether a value is of a round of a loop."""
    owner = value.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    while block != loop.body:
        parent = block.owner.operation
        if parent.name == "func.func":
            return False
        block = parent.block
    return True


def _choose_by(choice: arith.SelectOp, conditions: Sequence[ir.Value]) -> None:
    """Has a term be chosen by the conditions that are left."""
    if not conditions:
        choice.result.replace_all_uses_with(choice.true_value)
        choice.operation.erase()
        return
    with choice.location, ir.InsertionPoint(choice):
        choice.operation.operands[0] = reduce(arith.andi, conditions)
