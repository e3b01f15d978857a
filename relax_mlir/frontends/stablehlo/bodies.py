"""What regions compute of single elements: known functions by name, others of whole tensors."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, broadcast_to, dims_of
from relax_mlir.symbolic import Expr

from ..complex import Pair
from ..elements import mlir_element
from .importer import RETURNS, Scope
from .node import Node
from .quantization import is_quantized
from .registry import Value
from .types import declared

Names = dict[ir.Value, str]

OF_QUANTIZED = {"add", "maximum", "minimum"}
"""Functions of integers with a zero point that are the same of their distances to it."""

LONGEST = 10_000
"""Characters of a text, which doubles where an op has the same operand twice."""


def returned(block: ir.Block) -> list[ir.Value]:
    """What a region yields."""
    last = block.operations[len(block.operations) - 1].operation
    return list(last.operands) if last.name in RETURNS else []


def expression(value: ir.Value, block: ir.Block, names: Names) -> str:
    """What a value of a region is, as text, which is the same for the same computation.

    `names` are of arguments. Values from around the region, ops with regions and long texts are
    unique.
    """
    texts = dict(names)
    for view in block.operations:
        op = view.operation
        for result in op.results:
            text = _computed(result, op, texts)
            texts[result] = f"op {hash(result)}" if len(text) > LONGEST else text
    return texts.get(value, f"outer {hash(value)}")


def _computed(value: ir.Value, op: ir.Operation, texts: Names) -> str:
    """What an op computes of operands that are texts."""
    if len(op.regions) or len(op.results) != 1:
        return f"op {hash(value)}"
    if op.name == "stablehlo.constant":
        return f"{op.attributes['value']}" if "complex" not in str(value.type) else str(op)
    operands = (texts.get(operand, f"outer {hash(operand)}") for operand in op.operands)
    return f"{op.name.partition('.')[2]}{_attributes(op)}({', '.join(operands)})"


def _attributes(op: ir.Operation) -> str:
    if op.name == "stablehlo.compare":
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        return f" {direction}" + (" TOTAL" if is_total(op) else "")
    known = {name: str(op.attributes[name]) for name in op.attributes}
    kinds = [result.type for result in op.results]
    is_typed = op.name.endswith("t") or any(map(is_quantized, kinds))
    types = ", ".join(map(str, kinds)) if is_typed else ""
    return f" {known}{types}" if known or types else ""


def is_total(op: ir.Operation) -> bool:
    """Whether a comparison is by the total order of floats."""
    return "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"])


def reducers(block: ir.Block) -> list[str] | None:
    """The op that combines each pair of arguments, such as "add"; None if it is not one op.

    Arguments are what is accumulated, of each result, and then an element of each. Where some are
    quantised, all ops are of those that are the same of centred integers.
    """
    count = len(block.arguments) // 2
    names: Names = {each: f"a{i}" for i, each in enumerate(block.arguments)}
    combined = []
    for i, value in enumerate(returned(block)):
        own, other = f"a{i}", f"a{count + i}"
        text = expression(value, block, names)
        name = text.partition("(")[0]
        if text not in (f"{name}({own}, {other})", f"{name}({other}, {own})"):
            return None
        combined.append(name.partition(" ")[0] if is_quantized(value.type) else name)
    if any(is_quantized(each.type) for each in block.arguments):
        return combined if set(combined) <= OF_QUANTIZED else None
    return combined


def is_update(block: ir.Block) -> bool:
    """Whether a region yields the second half of its arguments."""
    count = len(block.arguments) // 2
    return returned(block) == list(block.arguments)[count:]


def accumulators(node: Node) -> dict[int, int]:
    """The arguments of the last region that operands of a reduction or a scatter are passed as."""
    count = len(node.operands) // 2
    if node.name == "select_and_scatter":
        return {1: 0, 2: 0}
    if node.name == "scatter":
        return {i: i if i < count else i - count - 1 for i in range(2 * count + 1) if i != count}
    return {i: i % count for i in range(2 * count)}


def promoted(node: Node) -> Node:
    """An op whose region has arguments of more bits than operands, on operands of such types."""
    operands, arguments = list(node.operands), node.regions[-1].arguments
    for index, argument in accumulators(node).items():
        kind = declared(arguments[argument].type)
        if kind.quantization is None and node.element(index) != kind.element:
            element = mlir_element(kind.part)
            operands[index] = each_part(lambda x: astype(x, element), operands[index], node.scope)
    return node.of_values(operands, [kind.element for kind in node.results])


def each_part(function: Callable[[ir.Value], ir.Value], value: Value, scope: Scope) -> Value:
    """A function of a tensor, or of both parts of a complex one."""
    if isinstance(value, Pair):
        return Pair(*(function(scope.importer.tensor(part)) for part in value.parts))
    return function(scope.importer.tensor(value))


def lifted(
    scope: Scope, block: ir.Block, arguments: Sequence[Value], dims: Sequence[Expr]
) -> list[Value]:
    """What a region yields of all elements of tensors of these dims at once."""
    results = scope.inner(lifted=True).run(block, arguments)
    return [each_part(lambda x: _reaching(x, dims), value, scope) for value in results]


def _reaching(x: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    return x if dims_of(x) == tuple(dims) else broadcast_to(x, list(dims))
