"""Whose memory a tensor of a program is computed in, followed from result to destination.

%a = scf.forall .. shared_outs(%b = %out)      %a is computed in %out, as is what loops make
%c = tensor.insert %x into %a[%i]              of it step by step
"""

from relax_mlir.bindings import ir

_DESTINATIONS = {
    "bufferization.materialize_in_destination": 1,
    "tensor.cast": 0,
    "tensor.extract_slice": 0,
    "tensor.insert": 1,
    "tensor.insert_slice": 1,
}
"""The operand whose memory the result of an op is."""


def is_computed_in(value: ir.Value, argument: ir.Value) -> bool:
    """Whether a value certainly is in the memory of an argument of the function."""
    destination = _destination(value)
    return destination is not None and destination == argument


def _destination(value: ir.Value) -> ir.Value | None:
    """The argument of the function in whose memory a value is; None if that cannot be told."""
    if isinstance(value.owner, ir.Block):
        return _of_argument(value)
    op = value.owner
    index = list(op.results).index(value)
    if op.name in _DESTINATIONS:
        return _destination(op.operands[_DESTINATIONS[op.name]])
    if op.name == "scf.forall":
        shared = len(op.operands) - len(op.results)
        return _destination(op.operands[shared + index])
    if op.name == "scf.for":
        return _of_all(op.operands[3 + index], _yielded(op, 0)[index])
    if op.name == "scf.if":
        return _of_all(*(_yielded(op, region)[index] for region in (0, 1)))
    return None


def _of_argument(value: ir.Value) -> ir.Value | None:
    """Where what a loop carries is, or what tasks share, when it begins."""
    op = value.owner.owner.operation
    if op.name == "func.func":
        return value
    position = list(value.owner.arguments).index(value)
    if op.name == "scf.for" and position:
        return _destination(op.operands[2 + position])
    first = len(value.owner.arguments) - len(op.results)
    if op.name == "scf.forall" and position >= first:
        return _destination(op.operands[len(op.operands) - len(op.results) + position - first])
    return None


def _of_all(*values: ir.Value) -> ir.Value | None:
    first, *others = map(_destination, values)
    same = first is not None and all(x is not None and x == first for x in others)
    return first if same else None


def _yielded(op: ir.Operation, region: int) -> list[ir.Value]:
    block = op.regions[region].blocks[0]
    return list(block.operations[len(block.operations) - 1].operands)
