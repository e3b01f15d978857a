"""Ops of CHLO, as JAX writes them: those of the dialect, and others by StableHLO's passes."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, element_of, emit, is_integer, rank_of
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr

from ...complex.arithmetic import conjugate
from ...elements import mlir_element
from ..importer import expanded
from ..node import Node
from ..registry import Value, operator
from .elementwise import BINARY, combined, is_bool, ordered, related

UNARY: dict[str, type[graph.InferredOp]] = {
    "acos": graph.AcosOp,
    "acosh": graph.AcoshOp,
    "asin": graph.AsinOp,
    "asinh": graph.AsinhOp,
    "atan": graph.AtanOp,
    "atanh": graph.AtanhOp,
    "cosh": graph.CoshOp,
    "erf": graph.ErfOp,
    "is_inf": graph.IsinfOp,
    "sinh": graph.SinhOp,
    "square": graph.SquareOp,
    "tan": graph.TanOp,
}

EXPANDED = (
    *("_asin_acos_kernel", "bessel_i1e", "digamma", "erf_inv", "erfc", "is_neg_inf", "is_pos_inf"),
    *("lgamma", "next_after", "polygamma", "zeta"),
)


@operator(*(f"chlo.{name}" for name in UNARY), elementwise=True)
def unary(node: Node) -> ir.Value:
    """One operator of the dialect."""
    return emit(UNARY[node.name], node.tensor(0))


@operator(*(f"chlo.{name}" for name in EXPANDED), elementwise=True, takes_pairs=True)
def by_passes(node: Node) -> "Value | tuple[Value, ...]":
    """The ops that StableHLO has for it."""
    return expanded(node)


@operator("chlo.conj", elementwise=True, takes_pairs=True)
def conj(node: Node) -> Value:
    """The imaginary part with its sign changed."""
    return conjugate(node.pair(0))


@operator(*(f"chlo.broadcast_{name}" for name in BINARY), elementwise=True)
def broadcast(node: Node) -> ir.Value:
    """An op of two tensors, of which one is repeated as NumPy does."""
    return combined(node.name.removeprefix("broadcast_"), *_broadcast(node))


@operator("chlo.broadcast_compare", elementwise=True)
def broadcast_compare(node: Node) -> ir.Value:
    """A relation of two tensors, of which one is repeated as NumPy does."""
    return related(node, *_broadcast(node))


def _broadcast(node: Node) -> list[ir.Value]:
    if node.has("broadcast_dimensions"):
        raise ModelError("has axes of broadcasts, which is not supported")
    return node.tensors()


@operator("chlo.top_k")
def top_k(node: Node) -> tuple[Value, ...]:
    """The greatest elements along the last axis, in total order, and where they are."""
    return greatest(node.tensor(0), node.integer("k"))


def greatest(x: ir.Value, k: "int | Expr") -> tuple[Value, ...]:
    """The `k` greatest elements along the last axis, in total order, and where they are."""
    axis, element = rank_of(x) - 1, element_of(x)
    key = astype(x, mlir_element("i8")) if is_bool(x) else x
    if not is_integer(element):
        key = ordered(x)
    _, indices = graph.TopkOp.build(key, k=[k], axis=axis, largest=True).operation.results
    values = emit(graph.GatherElementsOp, x, indices, axis=axis)
    return values, astype(indices, mlir_element("i32"))
