"""Calls, branches and loops."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import binary
from relax_mlir.decompositions.loops import truth_of
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ...complex import Pair
from ...regions import branch, loop_while
from ..folds import parts_of
from ..importer import run_entry
from ..node import Node
from ..registry import Value, find, operator
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


def _structured(flat: Sequence[ir.Value], like: Sequence[Declared]) -> list[Value]:
    """Tensors as values of types again."""
    rest, values = iter(flat), list[Value]()
    for kind in like:
        first = next(rest)
        values.append(Pair(first, next(rest)) if kind.is_complex else first)
    return values


# Branches.


@operator("if", takes_pairs=True)
def if_(node: Node) -> tuple[Value, ...]:
    """What one of two regions yields; that of a known condition alone."""
    known = node.known(0)
    if known is not None and not known.is_symbolic:
        block = node.regions[0 if known.array.reshape(-1)[0] else 1]
        return tuple(node.scope.inner().run(block, []))
    condition = truth_of(node.tensor(0))
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
        condition = truth_of(equal)
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
    bodies = [lambda: parts_of(node.scope, then()), lambda: parts_of(node.scope, otherwise())]
    results = branch(node.importer, condition, bodies)
    named = [node.importer.named(each) for each in results]
    return _structured(named, node.results)


# Loops.


@operator("while", takes_pairs=True)
def while_(node: Node) -> tuple[Value, ...]:
    """Rounds of a region as long as another one yields true."""
    condition, body = node.regions
    kinds = [declared(argument.type) for argument in body.arguments]

    def values_of(arguments: list[ir.Value]) -> list[Value]:
        return _structured([node.importer.named(each) for each in arguments], kinds)

    def goes_on(arguments: list[ir.Value]) -> ir.Value:
        (truth,) = parts_of(node.scope, _run(node, condition, values_of(arguments)))
        return truth

    def round_(arguments: list[ir.Value]) -> list[Value]:
        return [*parts_of(node.scope, _run(node, body, values_of(arguments)))]

    return tuple(
        values_of(loop_while(node.importer, parts_of(node.scope, node.operands), goes_on, round_))
    )
