"""Mutates modules as IR: operands, types, attributes and ops, so that MLIR still parses them."""

from random import Random

from relax_mlir.bindings import ir
from relax_mlir.rewriting import is_unused, walk_ops
from relax_mlir.testing.mutate.words import NAMES, NUMBERS, STRINGS

_ATTRIBUTES = (
    *(f"{number} : i64" for number in NUMBERS[:12]),
    *(text for text in STRINGS if "FF" not in text),
    *("unit", "true", "[]", "array<i64: 0, 1>", "array<i64: 9223372036854775807>", "@main"),
    *(
        "array<i64: -1, -1, -1>",
        "array<i32: 1, 0>",
        "array<f16: 1.0>",
        "array<i64: 1, 2, 4, 8>",
        "[1, 2]",
        "{}",
    ),
    *('#graph.shape<["n", 4]>', "#graph.shape<[0]>", '#graph.shape<["q"]>', "#graph.shape<[]>"),
    *("1.0 : f32", "0x7F800000 : f32", "f32", "tensor<4xf32>", "dense<1.0> : tensor<4xf32>"),
)


def damage(module: ir.Module, random: Random) -> None:
    """Makes one to three changes to a module in place; it may no longer verify."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        ops: list[ir.OpView] = walk_ops(module)[:-1]
        if ops:
            random.choice(_CHANGES)(random.choice(ops), ops, random)


def _values(op: ir.OpView) -> list[ir.Value]:
    """The values defined before an op in its block, and the block's arguments."""
    block = op.operation.block
    values: list[ir.Value] = list(block.arguments)
    for other in block.operations:
        if other.operation == op.operation:
            break
        values += other.operation.results
    return values


def _types(ops: list[ir.OpView]) -> list[ir.Type]:
    types = {value.type for op in ops for value in (*op.operands, *op.results)}
    return sorted(types, key=str)


def _random_type(ops: list[ir.OpView], random: Random) -> ir.Type | None:
    types = _types(ops)
    if types and random.random() < 0.6:
        return random.choice(types)
    return _parsed(ir.Type, random.choice(NAMES))


def _parsed(kind, text: str):
    try:
        return kind.parse(text)
    except ir.MLIRError:
        return None


def _change_operand(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    values = _values(op)
    if len(op.operands) and values:
        op.operation.operands[random.randrange(len(op.operands))] = random.choice(values)


def _change_type(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    type_ = _random_type(ops, random)
    if len(op.results) and type_ is not None:
        op.results[random.randrange(len(op.results))].set_type(type_)


def _change_argument(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    """Gives a block argument another type; of a function, in its signature too."""
    blocks = [block for region in op.operation.regions for block in region.blocks]
    type_ = _random_type(ops, random)
    if not blocks or not len(blocks[0].arguments) or type_ is None:
        return
    at = random.randrange(len(blocks[0].arguments))
    blocks[0].arguments[at].set_type(type_)
    if "function_type" in op.attributes:
        old = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs = [argument.type for argument in blocks[0].arguments]
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))


def _change_result(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    """Makes a function return other values of the types in its signature."""
    if op.operation.name != "func.return":
        _change_operand(op, ops, random)
        return
    _change_operand(op, ops, random)
    function = op.operation.parent
    if function is not None and "function_type" in function.attributes:
        old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        results = [value.type for value in op.operands]
        new = ir.FunctionType.get(old.inputs, results)
        function.attributes["function_type"] = ir.TypeAttr.get(new)


def _change_attribute(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    names = [name for name, _ in op.attributes.items()]
    others = [value for other in ops for name, value in other.attributes.items() if name in names]
    if not names:
        return
    name = random.choice(names)
    if random.random() < 0.3:
        del op.attributes[name]
        return
    value = _parsed(ir.Attribute, random.choice(_ATTRIBUTES))
    if random.random() < 0.4 and others:
        value = random.choice(others)
    if value is not None:
        op.attributes[name] = value


def _add_attribute(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    names = sorted({name for other in ops for name, _ in other.attributes.items()})
    value = _parsed(ir.Attribute, random.choice(_ATTRIBUTES))
    if names and value is not None:
        op.attributes[random.choice(names)] = value


def _erase(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    """Erases an op, and replaces its results by other values of their types, if there are any."""
    for result in op.results:
        others = [value for value in _values(op) if value.type == result.type]
        if others:
            result.replace_all_uses_with(random.choice(others))
    if is_unused(op):
        op.operation.erase()


def _repeat(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    with ir.InsertionPoint(op):
        op.operation.clone()


def _move(op: ir.OpView, ops: list[ir.OpView], random: Random) -> None:
    """Moves an op before another one that is not nested in it."""
    other = random.choice(ops)
    parent = other.operation
    while parent is not None:
        if parent == op.operation:
            return
        parent = parent.parent
    op.operation.move_before(other)


_CHANGES = (
    *(_change_operand, _change_operand, _change_type, _change_type, _change_argument),
    *(_change_result, _change_attribute, _change_attribute, _add_attribute, _erase, _repeat, _move),
)
