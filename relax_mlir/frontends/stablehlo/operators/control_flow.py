"""Calls, branches and loops."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir, scf, tensor
from relax_mlir.decompositions.emit import binary, reshape
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError

from ..importer import run_entry
from ..node import Node
from ..registry import Pair, Value, find, operator
from ..types import Declared, declared
from .chlo import UNARY

WHOLE = {f"chlo.{name}" for name in (*UNARY, "top_k")}
"""Composites that are ops of ours, which are more exact and faster than what they stand for."""


@operator("func.call", "call", elementwise=True, takes_pairs=True)
def call(node: Node) -> tuple[Value, ...]:
    """The ops of a function, imported here."""
    importer = node.importer
    name = ir.FlatSymbolRefAttr(node.attribute("callee")).value
    return tuple(call_function(node, importer.functions, name))


def call_function(node: Node, functions: dict[str, ir.Operation], name: str) -> list[Value]:
    """Imports the ops of a function of the source where an op is."""
    importer = node.importer
    if name not in functions or not len(functions[name].regions[0].blocks):
        raise ModelError(f"calls '@{name}', which has no body")
    if name in importer.calls:
        raise ModelError(f"calls '@{name}', which calls itself")
    importer.calls.append(name)
    scope = node.scope.isolated()
    results = scope.run(functions[name].regions[0].blocks[0], node.operands)
    importer.calls.pop()
    return results


@operator("composite", takes_pairs=True)
def composite(node: Node) -> "Value | tuple[Value, ...]":
    """What stands for a function: an op of that name that is known well, or the function."""
    stands_for = node.text("name")
    entry = find(stands_for) if stands_for in WHOLE else None
    if entry is not None:
        return run_entry(node.standing_for(stands_for), entry)
    name = ir.FlatSymbolRefAttr(node.attribute("decomposition")).value
    return tuple(call_function(node, node.importer.functions, name))


@operator("tuple", takes_pairs=True)
def tuple_(node: Node) -> Value:
    """Values as one."""
    return (tuple(node.operands),)


@operator("get_tuple_element", takes_pairs=True)
def get_tuple_element(node: Node) -> Value:
    """One of the values of a tuple."""
    values = node.operands[0]
    assert isinstance(values, tuple)
    value = values[node.integer("index")]
    return (value,) if isinstance(value, tuple) else value


# Values as tensors that regions carry.


def _flat(node: Node, values: Sequence[Value]) -> list[ir.Value]:
    """Values as tensors, complex ones as two."""
    flat: list[ir.Value] = []
    for value in values:
        parts = value.parts if isinstance(value, Pair) else (value,)
        flat += [node.importer.tensor(part) for part in parts]
    return flat


def _structured(flat: Sequence[ir.Value], like: Sequence[Declared]) -> list[Value]:
    """Tensors as values of types again."""
    rest, values = iter(flat), list[Value]()
    for kind in like:
        first = next(rest)
        values.append(Pair(first, next(rest)) if kind.is_complex else first)
    return values


def _cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    return (
        value
        if value.type == type_
        else graph.MatchCastOp.build(value, TensorType.of(type_)).result
    )


def _joined(types: Sequence[ir.Type], seen: set[str]) -> ir.Type:
    """The type that values of branches have in common, of symbols that are known around them."""
    first, *others = map(TensorType.of, types)
    dims = []
    for axis, dim in enumerate(first.dims or ()):
        same = all((other.dims or ())[axis] == dim for other in others)
        dims.append(dim if dim is not None and same and dim.symbols <= seen else None)
    return first.with_dims(dims).to_mlir()


# Branches.


@operator("if", takes_pairs=True)
def if_(node: Node) -> tuple[Value, ...]:
    """What one of two regions yields; that of a known condition alone."""
    known = node.known(0)
    if known is not None and not known.is_symbolic:
        block = node.regions[0 if known.array.reshape(-1)[0] else 1]
        return tuple(node.scope.inner().run(block, []))
    condition = tensor.ExtractOp(reshape(node.tensor(0), []), []).result
    return tuple(_branch(node, condition, *(_body(node, block) for block in node.regions)))


@operator("case", takes_pairs=True)
def case(node: Node) -> tuple[Value, ...]:
    """What the region of an index yields, the last one for an index that has none."""
    blocks, known = node.regions, node.known(0)
    if known is not None and not known.is_symbolic:
        index = int(known.array.reshape(-1)[0])
        chosen = blocks[index if 0 <= index < len(blocks) else -1]
        return tuple(node.scope.inner().run(chosen, []))
    index_of = node.tensor(0)

    def from_(start: int) -> list[Value]:
        if start == len(blocks) - 1:
            return _body(node, blocks[start])()
        equal = binary(graph.EqualOp, index_of, start)
        condition = tensor.ExtractOp(reshape(equal, []), []).result
        return _branch(node, condition, _body(node, blocks[start]), lambda: from_(start + 1))

    return tuple(from_(0))


def _body(node: Node, block: ir.Block) -> Callable[[], list[Value]]:
    return lambda: _run(node, block, [])


def _run(node: Node, block: ir.Block, arguments: Sequence[Value]) -> list[Value]:
    """What a region yields that may not run: what it asserts holds in it alone."""
    facts = node.importer.facts
    results = node.scope.inner().run(block, arguments)
    node.importer.facts = facts
    return results


def _branch(
    node: Node,
    condition: ir.Value,
    then: Callable[[], list[Value]],
    otherwise: Callable[[], list[Value]],
) -> list[Value]:
    """What one of two bodies yields, in the types that both have."""
    seen = set(node.importer.used)
    draft = scf.IfOp(condition, [], has_else=True)
    blocks = [draft.then_block, draft.else_block]
    yielded: list[list[ir.Value]] = []
    for block, body in zip(blocks, (then, otherwise), strict=True):
        with ir.InsertionPoint(block):
            yielded.append(_flat(node, body()))
    types = [_joined([a.type, b.type], seen) for a, b in zip(*yielded, strict=True)]
    for block, values in zip(blocks, yielded, strict=True):
        with ir.InsertionPoint(block):
            scf.YieldOp([_cast(value, type_) for value, type_ in zip(values, types, strict=True)])
    with ir.InsertionPoint(draft):
        final = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
    for block, region in zip(blocks, final.regions, strict=True):
        block.append_to(region)
    draft.operation.erase()
    named = [node.importer.named(each) for each in final.results]
    return _structured(named, node.results)


# Loops.


@operator("while", takes_pairs=True)
def while_(node: Node) -> tuple[Value, ...]:
    """Rounds of a region as long as another one yields true."""
    condition, body = node.regions
    kinds = [declared(argument.type) for argument in body.arguments]
    seen = set(node.importer.used)
    first = _flat(node, node.operands)
    types = [_joined([each.type], seen) for each in first]
    loop = scf.WhileOp(types, [_cast(v, t) for v, t in zip(first, types, strict=True)])

    def values_of(block: ir.Block) -> list[Value]:
        return _structured([node.importer.named(each) for each in block.arguments], kinds)

    before = loop.before.blocks.append(*types)
    with ir.InsertionPoint(before):
        (goes_on,) = _flat(node, _run(node, condition, values_of(before)))
        truth = tensor.ExtractOp(reshape(goes_on, []), []).result
        scf.ConditionOp(truth, list(before.arguments))
    after = loop.after.blocks.append(*types)
    with ir.InsertionPoint(after):
        left = _flat(node, _run(node, body, values_of(after)))
        scf.YieldOp([_cast(v, t) for v, t in zip(left, types, strict=True)])
    return tuple(_structured([node.importer.named(each) for each in loop.results], kinds))
