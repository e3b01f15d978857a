"""Control flow: branches and loops, whose results are variables."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.passes import PassFailure

from ..emitter import Emitter
from ..uniform import uniform_bounds


def _if(emitter: Emitter, op: ir.Operation) -> None:
    condition, targets = emitter.name(op.operands[0]), _variables(emitter, op.results)
    then, *other = [region.blocks[0] for region in op.regions if len(region.blocks)]
    has_else = bool(other) and len(list(other[0].operations)) + len(targets) > 1
    with emitter.nested(f"if ({condition})", "} else {" if has_else else "}"):
        emitter.assign(targets, emitter.block(then))
    if has_else:
        with emitter.continued():
            emitter.assign(targets, emitter.block(other[0]))
    emitter.names.update(zip(op.results, targets, strict=True))


def _for(emitter: Emitter, op: ir.Operation) -> None:
    if "unsignedCmp" in op.attributes:
        raise PassFailure(op, "compares unsigned integers, which no kernel does")
    block = op.regions[0].blocks[0]
    index, *carried = block.arguments
    if emitter.kind(index).value != "i32":
        raise PassFailure(op, f"counts in '{index.type}'; expects index or i32")
    lower, upper, step = uniform_bounds(emitter, op)
    first = emitter.operands(op)[3:]
    targets = _variables(emitter, carried, first)
    name = emitter.fresh("at")
    emitter.names[index] = name
    is_small = isinstance(index.type, ir.IndexType) and emitter.bounds.is_known(index)
    advance = f"{name} += {step}" if is_small else ""
    with emitter.nested(f"for (var {name} = {lower}; {name} < {upper}; {advance})"):
        _freeze(emitter, carried, targets)
        emitter.assign(targets, emitter.block(block))
        if not is_small:  # the sum may not fit
            emitter.line(f"if ({upper} - {name} <= {step}) {{ break; }}")
            emitter.line(f"{name} += {step};")
    _freeze(emitter, op.results, targets)


def _while(emitter: Emitter, op: ir.Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    targets = _variables(emitter, list(before.arguments), emitter.operands(op))
    passed = _variables(emitter, list(op.results))
    with emitter.nested("loop"):
        _freeze(emitter, list(before.arguments), targets)
        condition, *values = emitter.block(before)
        emitter.assign(passed, values)
        emitter.line(f"if (!({condition})) {{ break; }}")
        _freeze(emitter, list(after.arguments), passed)
        emitter.assign(targets, emitter.block(after))
    emitter.names.update(zip(op.results, passed, strict=True))


def _variables(
    emitter: Emitter, values: Sequence[ir.Value], first: Sequence[str] | None = None
) -> list[str]:
    """Declares a variable for each value, and sets it."""
    names = [emitter.fresh("a") for _ in values]
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        start = f" = {first[i]}" if first is not None else ""
        emitter.line(f"var {name}: {emitter.kind(value).value}{start};")
    return names


def _freeze(emitter: Emitter, values: Sequence[ir.Value], names: Sequence[str]) -> None:
    """Names what variables are now."""
    for value, name in zip(values, names, strict=True):
        emitter.let(value, name)


OPS = {"for_": _for, "if_": _if, "while_": _while}
