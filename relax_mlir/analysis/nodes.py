"""The rules of dataflow nodes: leaves, internal nodes, what edges bind, and the hierarchy.

An instance of a node sees the part of an operand at its own index, or all of it:

    grid [n, 4]     operand tensor<n x 4 x 8>, one_to_one    parameter tensor<8>
                    operand tensor<m>, all_to_all            parameter tensor<m>
    the callee returns tensor<8>                             result tensor<n x 4 x 8>

    grid [ceil(n/64)] of tiles that cover [n]
                    operand tensor<n x 8>, tiles             parameter tensor<64 x 8>
    the callee returns tensor<64 x 8>                        result tensor<n x 8>

Dims that must agree are proved equal, since instances are independent: none could refuse a call.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    ALL_TO_ALL,
    EXTENTS,
    INTERNAL,
    ONE_TO_ONE,
    STREAMS,
    TILES,
    CallOp,
    NodeOp,
    ShapeAttr,
    ShapeError,
    TensorType,
    annotation_of,
    dims_of_attr,
)
from relax_mlir.dialects.tir import LEAF, GlobalIdOp, GlobalSizeOp, Query
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, Facts, SymbolicError, as_expr, equal

from .functions import FACTS, facts_of, is_public
from .leaves import broken_in_leaf, shared_parameters, updated_parameters
from .node_versions import broken_targets, broken_versions
from .shared_memory import broken_sharing, uniform_parameters
from .signatures import functions_by_name, unify

Broken = tuple[ir.Operation | ir.OpView, str]


MAX_LEVELS = 64
"""Limit on the depth of a hierarchy, which passes follow by recursion."""


def is_leaf(function: func.FuncOp) -> bool:
    """Whether a function is the program of one instance of a node."""
    return LEAF in function.attributes


def is_internal(function: func.FuncOp) -> bool:
    """Whether a function is an internal node."""
    return INTERNAL in function.attributes


def has_nodes(module: ir.Operation) -> bool:
    """Whether a module has dataflow nodes, used or not."""
    functions = functions_by_name(module).values()
    return any(is_leaf(f) or is_internal(f) for f in functions) or bool(walk_ops(module, NodeOp))


def piece_type(type_: ir.Type) -> TensorType:
    """What a parameter or result of an instance is as a tensor: a scalar is one of rank 0."""
    annotation = annotation_of(type_)
    return annotation if isinstance(annotation, TensorType) else TensorType((), type_)


@dataclass(frozen=True)
class Binding:
    """What a node passes to its callee: the callee's symbols, and what each instance returns.

    The first pieces, if some parameters are `shared`, are what all instances made together.
    """

    values: Mapping[str, Expr]
    pieces: tuple[TensorType, ...]
    shared: int = 0

    def results(self, grid: Sequence[Expr]) -> list[TensorType]:
        """The results of a node over a grid."""
        own = [
            TensorType((*grid, *(piece.dims or ())), piece.element)
            for piece in self.pieces[self.shared :]
        ]
        return [*self.pieces[: self.shared], *own]


@dataclass(frozen=True)
class Tiles:
    """What the instances of a node of tiles cover together, and the extents of a tile."""

    covered: tuple[Expr, ...]
    sizes: tuple[int, ...]


def tiles_of(op: NodeOp, functions: Mapping[str, func.FuncOp]) -> Tiles | None:
    """The tiles that a node runs, if it does; raises ShapeError if its callee is none."""
    covered = op.covered
    if covered is None:
        return None
    callee = functions[op.callee_name]
    inner = list(callee.entry_block.operations) if is_internal(callee) else []
    node = inner[0] if len(inner) == 2 else None
    sizes: list[int | None] = []
    if isinstance(node, NodeOp) and list(inner[1].operands) == list(node.outs):
        sizes = [extent.value for extent in node.extents]
    known = tuple(size for size in sizes if size)
    is_tile = len(known) == len(sizes) == len(covered)
    if not isinstance(node, NodeOp) or EXTENTS in node.attributes or not is_tile:  # C11
        raise ShapeError(
            f"runs '@{op.callee_name}' on tiles; expects an internal node that returns what one "
            f"node over {len(covered)} static dims computes"
        )
    passed = [op.edge_kinds[ir.BlockArgument(value).arg_number] for value in node.ins]
    for index, pair in enumerate(zip(passed, node.edge_kinds)):  # C14
        if pair not in ((TILES, ONE_TO_ONE), (ALL_TO_ALL, ALL_TO_ALL)):
            raise ShapeError(
                f"passes operand {index} of the node in '@{op.callee_name}' by {' and '.join(pair)}"
                f"; expects {TILES} and {ONE_TO_ONE}, or {ALL_TO_ALL} twice"
            )
    return Tiles(covered, known)


def seen_by_instances(
    grid: Sequence[Expr],
    kinds: Sequence[str],
    operands: Sequence[TensorType],
    facts: Facts,
    tiles: Tiles | None = None,
) -> list[TensorType]:
    """The operands as an instance gets them; raises ShapeError if a grid is not proved to match."""
    seen = []
    for index, (annotation, kind) in enumerate(zip(operands, kinds)):
        leading, tile = grid, tuple[Expr, ...]()  # C5
        if kind == TILES:  # C13
            assert tiles is not None
            leading, tile = tiles.covered, tuple(map(as_expr, tiles.sizes))
        if kind in (ONE_TO_ONE, TILES):
            dims = annotation.dims or ()
            if len(dims) < len(leading):
                raise ShapeError(
                    f"expects operand {index}, which is {kind}, to have the {len(leading)} dims "
                    f"of the grid, but got '{annotation}'"
                )
            for axis, (extent, dim) in enumerate(zip(leading, dims)):
                _prove(f"operand {index}, {kind},", axis, dim, extent, facts)
            annotation = TensorType((*tile, *dims[len(leading) :]), annotation.element)
        seen.append(annotation)
    return seen


def bind(callee: func.FuncOp, seen: Sequence[TensorType]) -> Binding:
    """Binds the callee's symbols by what an instance gets; raises ShapeError if one is not."""
    parameters = [piece_type(type_) for type_ in callee.type.inputs]
    unification = unify(parameters, seen)
    pieces = []
    for index, type_ in enumerate(callee.type.results):
        piece = unification.annotation(piece_type(type_))
        assert isinstance(piece, TensorType)
        if not piece.is_exact:
            raise ShapeError(
                f"cannot tell the dims of result {index} of '@{callee.name.value}', '{type_}'"
            )
        pieces.append(piece)
    shared = len(shared_parameters(callee)) if is_leaf(callee) else 0
    return Binding(unification.values, tuple(pieces), shared)


def _prove(what: str, axis: int, got: Expr | None, want: Expr | None, facts: Facts) -> None:
    """Raises ShapeError, with a counterexample if there is one, unless dims are proved equal."""
    verdict = None if got is None or want is None else equal(got, want, facts)
    if verdict is not None and verdict.proved:
        return
    example = (
        ""
        if verdict is None or verdict.counterexample is None
        else " for "
        + ", ".join(f"{name} = {value}" for name, value in sorted(verdict.counterexample.items()))
    )
    verb = "differ" + example if example else "are not proved equal"
    raise ShapeError(f"has dim {axis} of {what} {got or '?'} instead of {want or '?'}: they {verb}")


def broken_rules(module: ir.Operation) -> Iterator[Broken]:
    """The ops that break a rule of dataflow nodes, each with the message."""
    functions = functions_by_name(module)
    cyclic = list(_cycles(functions))
    yield from cyclic
    for function in functions.values():
        yield from broken_versions(function, functions)
        if is_leaf(function) and is_internal(function):
            yield function, f"has both '{LEAF}' and '{INTERNAL}'"
        elif is_leaf(function):
            yield from _broken_signature(function)
            in_leaf = list(broken_in_leaf(function))
            yield from in_leaf or broken_sharing(function)
        elif not function.is_external:
            if is_internal(function):
                yield from _broken_signature(function)
                yield from _broken_in_internal(function)
            yield from _broken_nodes(function, functions)
    if not cyclic:
        yield from _broken_queries(functions)


def report_broken(module: ir.Operation) -> bool:
    """Emits an error for each rule that is broken; whether one is."""
    broken = list(broken_rules(module))
    for at, message in broken:
        at.location.emit_error(f"'{at.operation.name}' op {message}")
    return bool(broken)


def _broken_signature(function: func.FuncOp) -> Iterator[Broken]:
    if is_public(function):
        yield function, 'is a node, which only nodes run; expects sym_visibility = "private"'
    if function.is_external:
        yield function, "is a node without a body"
    elif not function.type.results:
        yield function, "is a node without results, so that nothing could use it"
    if FACTS in function.attributes:
        yield function, f"is a node; '{FACTS}' belong to the function that runs it"
    if (wrong := broken_targets(function)) is not None:
        yield function, wrong


def _broken_in_internal(function: func.FuncOp) -> Iterator[Broken]:
    """H1: an internal node is nodes and nothing else, and returns what they make."""
    if function.is_external:
        return
    if len(function.body.blocks) != 1:
        yield function, "is an internal node of several blocks; expects one"
        return
    ops = list(function.entry_block.operations)
    for op in ops[:-1]:
        if not isinstance(op, NodeOp):
            yield op, "cannot be in an internal node, which has nodes only; put it into a leaf"
    for index, value in enumerate(ops[-1].operands):
        if isinstance(value.owner, ir.Block):
            yield ops[-1], f"returns operand {index}, an argument, which no node of it computes"


def _broken_nodes(function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> Iterator[Broken]:
    for call in walk_ops(function, CallOp):
        callee = functions.get(call.callee_name)
        if callee is not None and (is_leaf(callee) or is_internal(callee)):
            yield call, f"calls '@{call.callee_name}', which is a node; expects graph.node"
    for op in walk_ops(function, NodeOp):
        try:
            _check_node(op, functions, facts_of(function))
        except (ShapeError, SymbolicError) as error:
            yield op, str(error)


def _check_node(op: NodeOp, functions: Mapping[str, func.FuncOp], facts: Facts) -> None:
    op.check()  # C2, C3
    around = op.operation.parent
    if STREAMS in op.attributes and (around.name != "func.func" or INTERNAL in around.attributes):
        raise ShapeError(f"has '{STREAMS}', but is no node of a graph function itself")  # C16
    callee = functions.get(op.callee_name)
    if callee is None or not (is_leaf(callee) or is_internal(callee)):  # C1
        raise ShapeError(f"runs '@{op.callee_name}', which is no leaf and no internal node")
    operands = [annotation_of(value) for value in op.ins]
    parameters = [piece_type(type_) for type_ in callee.type.inputs]
    counts, expected = (len(operands), len(op.outs)), (len(parameters), len(callee.type.results))
    if counts != expected:  # C4
        raise ShapeError(
            f"binds {counts[0]} operands and {counts[1]} results of '@{op.callee_name}', which has "
            f"{expected[0]} parameters and {expected[1]} results"
        )
    known: list[TensorType] = []
    for index, annotation in enumerate(operands):
        if not isinstance(annotation, TensorType) or not annotation.is_exact:  # C4
            raise ShapeError(
                f"expects operand {index} to be a tensor of known dims, but got "
                f"'{op.ins[index].type}', which graph.match_cast can tell"
            )
        known.append(annotation.storage)
    tiles = tiles_of(op, functions)
    for axis, (extent, size) in enumerate(zip(tiles.covered, tiles.sizes) if tiles else ()):  # C12
        _prove("the grid of tiles", axis, op.extents[axis], (extent + size - 1) // size, facts)
    seen = seen_by_instances(op.extents, op.edge_kinds, known, facts, tiles)
    for index, (own, parameter) in enumerate(zip(seen, parameters)):
        if own.element != parameter.element or own.rank != parameter.rank:  # C4
            raise ShapeError(
                f"passes '{own}' as operand {index} to '@{op.callee_name}', which takes "
                f"'{callee.type.inputs[index]}'"
            )
    for index in updated_parameters(callee) if is_leaf(callee) else ():  # C10
        if op.edge_kinds[index] != ONE_TO_ONE:
            raise ShapeError(
                f"passes operand {index} all_to_all, which '@{op.callee_name}' stores to; expects "
                f"{ONE_TO_ONE}, so that each instance has a part of its own"
            )
    _check_shared(op, callee, functions)
    binding = bind(callee, seen)
    for index, (own, parameter) in enumerate(zip(seen, parameters)):  # C6
        for axis, (got, dim) in enumerate(zip(own.dims or (), parameter.dims or ())):
            want = None if dim is None else dim.substitute(binding.values)
            _prove(f"operand {index}, as '@{op.callee_name}' gets it,", axis, got, want, facts)
    _check_results(op, binding, tiles, facts)


def _check_shared(op: NodeOp, callee: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
    """C15: what all instances share, and what has to be the same for each, reaches all of them."""
    if op.covered is not None:  # C11
        inner = functions.get(next(iter(walk_ops(callee, NodeOp))).callee_name)
        if inner is not None and is_leaf(inner) and shared_parameters(inner):
            raise ShapeError(f"runs tiles of '@{inner.name.value}', whose instances share memory")
    if not is_leaf(callee):
        return
    for index in {*shared_parameters(callee), *uniform_parameters(callee)}:
        if op.edge_kinds[index] != ALL_TO_ALL:
            raise ShapeError(
                f"passes operand {index} one_to_one, which instances of '@{op.callee_name}' share; "
                f"expects {ALL_TO_ALL}"
            )


def _check_results(op: NodeOp, binding: Binding, tiles: Tiles | None, facts: Facts) -> None:
    for index, (out, piece) in enumerate(zip(op.outs, binding.pieces)):  # C7
        want = piece if index < binding.shared else result_type(op, piece, tiles)
        got = annotation_of(out)
        if not isinstance(got, TensorType) or got.element != want.element or got.rank != want.rank:
            raise ShapeError(f"has result {index} of '{out.type}' instead of '{want.to_mlir()}'")
        for axis, (own, dim) in enumerate(zip(got.dims or (), want.dims or ())):
            _prove(f"result {index}", axis, own, dim, facts)


def result_type(op: NodeOp, piece: TensorType, tiles: Tiles | None) -> TensorType:
    """A result of a node, of what each instance returns."""
    dims = piece.dims or ()
    if tiles is None:
        return TensorType((*op.extents, *dims), piece.element)
    return TensorType((*tiles.covered, *dims[len(tiles.covered) :]), piece.element)


def _cycles(functions: Mapping[str, func.FuncOp]) -> Iterator[Broken]:
    """C8: the nodes at which a path through the hierarchy comes back to a function, or is long."""
    levels: dict[str, int] = {}

    def inner(name: str) -> Iterator[NodeOp]:
        ops = walk_ops(functions[name], NodeOp)
        return (op for op in ops if op.callee_name in functions)

    for root in functions:
        if root in levels:
            continue
        path, rest = [root], [inner(root)]
        while path:
            op = next(rest[-1], None)
            if op is None:
                name = path.pop()
                rest.pop()
                below = [levels.get(op.callee_name, 0) for op in inner(name)]
                levels[name] = 1 + max(below) if below else 0
                if levels[name] == MAX_LEVELS + 1:
                    yield functions[name], f"is a hierarchy of more than {MAX_LEVELS} levels"
            elif op.callee_name in path:
                cycle = [*path[path.index(op.callee_name) :], op.callee_name]
                yield op, f"contains itself: {' -> '.join('@' + name for name in cycle)}"
            elif op.callee_name not in levels:
                path.append(op.callee_name)
                rest.append(inner(op.callee_name))


_Demand = tuple[int, int, bool]
"""A level and a dim, and whether tiles are asked for: those of the node at this level."""


def _demand(query: Query) -> _Demand:
    level, dim = query.position
    is_global = isinstance(query, GlobalIdOp | GlobalSizeOp)
    return level + is_global, dim, is_global


def _broken_queries(functions: Mapping[str, func.FuncOp]) -> Iterator[Broken]:
    """C9: what functions ask of nodes around them has to be there, wherever they run."""
    demands: dict[str, dict[_Demand, ir.OpView]] = {}

    def demanded(name: str) -> dict[_Demand, ir.OpView]:
        """The levels and dims that a function asks for, by the ops that do."""
        if name in demands:
            return demands[name]
        result: dict[_Demand, ir.OpView] = {}
        function = functions[name]
        for query in walk_ops(function, Query) if is_leaf(function) else ():
            result.setdefault(_demand(query), query)
        for op in walk_ops(function, NodeOp):
            if op.callee_name in functions:
                asked = demanded(op.callee_name)
                outer = {(n - 1, d, t): at for (n, d, t), at in asked.items() if n > 0}
                result = outer | result
        demands[name] = result
        return result

    for name, function in functions.items():
        for op in walk_ops(function, NodeOp):
            if op.callee_name not in functions:
                continue
            rank = len(dims_of_attr(ShapeAttr(op.attributes["grid"]).dims))
            for (level, dim, needs_tiles), query in demanded(op.callee_name).items():
                if level == 0 and needs_tiles and EXTENTS not in op.attributes:
                    yield query, f"asks for what tiles cover, but runs in none in '@{name}'"
                elif level == 0 and not 0 <= dim < rank:
                    yield query, f"asks for dim {dim} of a grid of {rank}, in '@{name}'"
                elif level > 0 and not is_internal(function):
                    yield query, f"asks for a node {level} levels above the outermost, in '@{name}'"
