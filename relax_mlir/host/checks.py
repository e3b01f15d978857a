"""Lowers casts and required facts to calls of the runtime, which reports violations."""

from collections.abc import Sequence

from relax_mlir.analysis.scopes import asserted_by, bound_by
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import (
    Dim,
    MatchCastOp,
    RequireOp,
    ShapeValueType,
    TensorType,
    annotation_of,
)
from relax_mlir.passes import PassFailure
from relax_mlir.symbolic import Fact, Facts, SymbolicError, sym

from .function import HostFunction
from .scope import HostTensor, Size
from .tables import KIND_TENSOR, Argument

UNBOUND = -1
"""The value of a symbol that a cast binds."""


def match_cast(host: HostFunction, op: MatchCastOp) -> None:
    """Binds new symbols, and checks the other dims and the facts on the new symbols."""
    annotation = annotation_of(op.result)
    if not isinstance(annotation, TensorType | ShapeValueType):
        raise PassFailure(op, f"casts to '{op.result.type}', which host code does not hold")
    if isinstance(annotation, TensorType) and annotation.dims is None:
        host.define(op.result, host.tensor(op.input))
        return
    sizes, wanted = host.sizes(op.input), dims_of(annotation)
    if len(wanted) != len(sizes):
        raise PassFailure(op, f"casts a value of {len(sizes)} dims to one of {len(wanted)}")
    new = bound_by(op, frozenset(host.scope.symbols))
    known = host.scope.symbols.keys() | new
    facts = [fact for fact in host.open_facts if fact.symbols <= known]
    open_dims = [
        None if dim is None or dim == size else dim for dim, size in zip(wanted, sizes, strict=True)
    ]
    plain = {str(dim): size for dim, size in zip(open_dims, sizes) if str(dim) in new}
    if facts or len(plain) < sum(dim is not None for dim in open_dims):
        symbols = _bind(host, op, sizes, open_dims, new, facts)
    else:
        symbols = {name: host.integer(op, size) for name, size in plain.items()}
    if symbols or facts:
        host.open_facts = [fact for fact in host.open_facts if fact not in facts]
        host.scope = host.scope.inside(symbols, Facts(tuple(facts)))
    host.scope.facts += asserted_by(op)
    dims = tuple(size if dim is None else dim for dim, size in zip(wanted, sizes, strict=True))
    if isinstance(annotation, TensorType):
        source = host.tensor(op.input)
        host.define(op.result, HostTensor(source.pointer, dims, source.element))
    else:
        host.scope.shapes[op.result] = dims


def _bind(
    host: HostFunction,
    op: MatchCastOp,
    sizes: Sequence[Size],
    dims: Sequence[Dim],
    new: frozenset[str],
    facts: Sequence[Fact],
) -> dict[str, ir.Value]:
    """Emits checks of dims, None for one that agrees, and of facts; returns the new symbols."""
    out = host.out
    mentioned = [dim for dim in dims if dim is not None]
    mentioned += [side for fact in facts for side in (fact.lhs, fact.rhs)]
    symbols = sorted(frozenset().union(*(expr.symbols for expr in mentioned)))
    values = [
        out.integer(UNBOUND) if name in new else host.integer(op, sym(name)) for name in symbols
    ]
    row = Argument("", KIND_TENSOR, 0, 0, tuple(dims))
    info = host.function_table(op, host.name, [row], symbols, facts, known=set(symbols) - new)
    extents = out.stack(len(dims) + len(symbols))
    out.store_integers([*host.integers(op, sizes), *values], extents)
    bound = out.field(extents, [len(dims)], out.i64)
    (status,) = out.call_runtime("rx_match_cast", [out.context, info, extents, bound])
    out.fail_unless_zero(status)
    return {name: out.load_integer(bound, symbols.index(name)) for name in sorted(new)}


def require(host: HostFunction, op: RequireOp) -> None:
    """Checks that one of the facts holds; a single one holds in the rest of the scope."""
    try:
        facts = op.facts
    except (SymbolicError, ValueError) as error:
        raise PassFailure(op, f"has malformed facts: {error}") from None
    symbols = sorted(Facts(facts).symbols)
    values = [host.integer(op, sym(name)) for name in symbols]
    out = host.out
    where = Diagnostic.at(op.location, "error", "").where
    who = f"{where}: {op.by.value}" if where else op.by.value
    info = host.function_table(op, who, [], symbols, facts)
    known = out.stack(len(symbols))
    out.store_integers(values, known)
    (status,) = out.call_runtime("rx_require", [out.context, info, known])
    out.fail_unless_zero(status)
    if len(facts) == 1:
        host.scope = host.scope.inside(facts=Facts(facts))
