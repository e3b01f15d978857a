"""The element-wise operators of floats: their exact values and the largest error that is allowed.

Bounds are in units in the last place. One of half a unit is what rounding once may do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import exact
import numpy as np

import relax_mlir
from relax_mlir.dialects import graph

ROUNDED = 0.5
BOUND = 2.0


@dataclass(frozen=True)
class Operator:
    """Exact values, from long doubles to long doubles, and the bound for singles and doubles."""

    exact: exact.Reference
    bound: float = BOUND


UNARY = {
    graph.AbsOp: Operator(np.abs, ROUNDED),
    graph.AcosOp: Operator(np.arccos),
    graph.AcoshOp: Operator(np.arccosh),
    graph.AsinOp: Operator(np.arcsin),
    graph.AsinhOp: Operator(np.arcsinh),
    graph.AtanOp: Operator(np.arctan),
    graph.AtanhOp: Operator(np.arctanh),
    graph.CeilOp: Operator(np.ceil, ROUNDED),
    graph.CosOp: Operator(np.cos),
    graph.CoshOp: Operator(np.cosh),
    graph.ErfOp: Operator(exact.erf),
    graph.ExpOp: Operator(np.exp),
    graph.Expm1Op: Operator(np.expm1),
    graph.FloorOp: Operator(np.floor, ROUNDED),
    graph.GeluOp: Operator(exact.gelu),
    graph.GeluTanhOp: Operator(exact.gelu_tanh),
    graph.LogOp: Operator(np.log),
    graph.Log10Op: Operator(np.log10),
    graph.Log1pOp: Operator(np.log1p),
    graph.Log2Op: Operator(np.log2),
    graph.NegativeOp: Operator(np.negative, ROUNDED),
    graph.ReciprocalOp: Operator(np.reciprocal, ROUNDED),
    graph.ReluOp: Operator(exact.relu, ROUNDED),
    graph.RoundOp: Operator(np.round, ROUNDED),
    graph.RsqrtOp: Operator(lambda x: 1 / np.sqrt(x)),
    graph.SigmoidOp: Operator(exact.sigmoid),
    graph.SignOp: Operator(exact.sign, ROUNDED),
    graph.SiluOp: Operator(exact.silu),
    graph.SinOp: Operator(np.sin),
    graph.SinhOp: Operator(np.sinh),
    graph.SqrtOp: Operator(np.sqrt, ROUNDED),
    graph.SquareOp: Operator(np.square, ROUNDED),
    graph.TanOp: Operator(np.tan),
    graph.TanhOp: Operator(np.tanh),
    graph.TruncOp: Operator(np.trunc, ROUNDED),
}
BINARY = {
    graph.AddOp: Operator(np.add, ROUNDED),
    graph.Atan2Op: Operator(np.arctan2),
    graph.CopysignOp: Operator(np.copysign, ROUNDED),
    graph.DivideOp: Operator(np.divide, ROUNDED),
    graph.FloorDivideOp: Operator(exact.floor_divide, ROUNDED),
    graph.HypotOp: Operator(np.hypot),
    graph.LogaddexpOp: Operator(exact.logaddexp),
    graph.MaximumOp: Operator(exact.maximum, ROUNDED),
    graph.MinimumOp: Operator(exact.minimum, ROUNDED),
    graph.MultiplyOp: Operator(np.multiply, ROUNDED),
    graph.PowerOp: Operator(np.power),
    graph.RemainderOp: Operator(np.remainder, ROUNDED),
    graph.SubtractOp: Operator(np.subtract, ROUNDED),
}
NOT_FLOATS = {
    *(graph.BitwiseAndOp, graph.BitwiseNotOp, graph.BitwiseOrOp, graph.BitwiseXorOp),
    *(graph.LogicalAndOp, graph.LogicalNotOp, graph.LogicalOrOp, graph.LogicalXorOp),
    *(graph.LeftShiftOp, graph.RightShiftOp, graph.LogicalRightShiftOp, graph.PopcountOp),
}
"""Operators of integers and truth values."""
PREDICATES = {
    graph.IsfiniteOp: np.isfinite,
    graph.IsinfOp: np.isinf,
    graph.IsnanOp: np.isnan,
    graph.SignbitOp: np.signbit,
}
COMPARISONS = {
    graph.EqualOp: np.equal,
    graph.GreaterOp: np.greater,
    graph.GreaterEqualOp: np.greater_equal,
    graph.LessOp: np.less,
    graph.LessEqualOp: np.less_equal,
    graph.NotEqualOp: np.not_equal,
}


def declared() -> Iterator[type]:
    """Every element-wise operator of one or two tensors that the dialect has."""
    for kind in vars(graph).values():
        is_class = isinstance(kind, type) and issubclass(kind, graph.UnaryOp | graph.BinaryOp)
        if is_class and hasattr(kind, "OPERATION_NAME"):
            yield kind


def name_of(op: type) -> str:
    """The operator's name in the dialect."""
    return op.OPERATION_NAME.removeprefix("graph.")


def compiled(dtype: str, opt_level: int = 2, target: str = "native") -> relax_mlir.Executable:
    """A module with a function of vectors for each operator of floats."""
    vector = f'tensor<?x{dtype}, #graph.shape<["n"]>>'
    truth = 'tensor<?xi1, #graph.shape<["n"]>>'
    functions = []
    for op in (*UNARY, *BINARY, *PREDICATES, *COMPARISONS):
        count = 2 if issubclass(op, graph.BinaryOp) else 1
        result = truth if op in PREDICATES or op in COMPARISONS else vector
        operands = ", ".join(f"%x{i}" for i in range(count))
        arguments = ", ".join(f"%x{i}: {vector}" for i in range(count))
        kinds = ", ".join([vector] * count)
        functions.append(f"""
        func.func @{name_of(op)}_op({arguments}) -> {result} {{
          %y = "{op.OPERATION_NAME}"({operands}) : ({kinds}) -> {result}
          return %y : {result}
        }}""")
    return relax_mlir.compile("\n".join(functions), opt_level=opt_level, target=target)
