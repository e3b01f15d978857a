"""Lowers operators to calls of an external library; others stay.

    %t = "graph.permute_dims"(%w) {axes = [1, 0]}
    %y = "graph.matmul"(%x, %t) : (tensor<?x64xf32, ...>, tensor<64x32xf32>) -> ...
      ->
    "lib.function"() {sym_name = "openblas.sgemm_nt", convention = "cblas_sgemm_nt", ...}
    %y = "graph.call_dps_library"(%x, %w) {callee = @openblas.sgemm_nt}

`ROWS` lists patterns and functions; the first match is used. `libraries` names the libraries that
may be used, `functions` the graph functions to rewrite (all, if empty). An operator is dispatched
only if it provably has at least `min-work` multiplications.

Needs: known dims. Leaves: other operators to `relax-legalize-ops`.
Source: paper §4.6, Figure 12 (partial library lowering); TVM `FuseOpsByPattern`, `RunCodegen`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from relax_mlir.analysis.functions import facts_of, graph_functions
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    CallDpsLibraryOp,
    GraphOp,
    MatmulOp,
    PermuteDimsOp,
    TensorType,
    annotation_of,
    dims_equal,
    exact_dims,
)
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pass
from relax_mlir.rewriting import is_unused, replace, safe_erase, walk_ops
from relax_mlir.symbolic import Expr, Facts, bounds, product

AnyOp = TypeVar("AnyOp", bound=GraphOp)


@dataclass(frozen=True)
class Row(Generic[AnyOp]):
    """A library function, and the pattern that it implements.

    `match` takes an operator and returns the operands for the library, or None; `work` counts
    the operator's multiplications.
    """

    library: str
    function: str
    operator: type[AnyOp]
    match: Callable[[AnyOp], list[ir.Value] | None]
    work: Callable[[AnyOp], Expr]
    c_symbol: str
    convention: str
    providers: Sequence[str]


def is_f32_matmul(op: MatmulOp) -> bool:
    """Rows of f32 times one f32 matrix, all dims known and the contracted ones equal."""
    types = [TensorType.of(value) for value in (op.lhs, op.rhs, op.result)]
    if not all(type_.is_exact and isinstance(type_.element, ir.F32Type) for type_ in types):
        return False
    lhs, rhs = (exact_dims(type_.dims) for type_ in types[:2])
    return len(rhs) == 2 and dims_equal(lhs[-1], rhs[0])


def matmul(op: MatmulOp) -> list[ir.Value] | None:
    """lhs times rhs."""
    return [op.lhs, op.rhs] if is_f32_matmul(op) else None


def matmul_transposed(op: MatmulOp) -> list[ir.Value] | None:
    """lhs times a transposed matrix, which is read without a copy."""
    if not is_f32_matmul(op) or isinstance(op.rhs.owner, ir.Block):
        return None
    transpose = op.rhs.owner.opview
    if not isinstance(transpose, PermuteDimsOp) or not TensorType.of(transpose.input).is_exact:
        return None
    return [op.lhs, transpose.input]


def matmul_work(op: MatmulOp) -> Expr:
    """The product of the result's dims and the contracted one."""
    result, lhs = (exact_dims(TensorType.of(value).dims) for value in (op.result, op.lhs))
    return product(result) * lhs[-1]


OPENBLAS = ("scipy-openblas64", "numpy")
"""Providers of OpenBLAS with 64-bit integers and this prefix, preferred first."""
SGEMM = "scipy_cblas_sgemm64_"

ROWS = (
    Row(
        "openblas",
        "openblas.sgemm_nt",
        MatmulOp,
        matmul_transposed,
        matmul_work,
        SGEMM,
        "cblas_sgemm_nt",
        OPENBLAS,
    ),
    Row(
        "openblas",
        "openblas.sgemm_nn",
        MatmulOp,
        matmul,
        matmul_work,
        SGEMM,
        "cblas_sgemm_nn",
        OPENBLAS,
    ),
)
"""The functions of libraries; the first row that matches an operator is used."""


@dataclass(frozen=True)
class DispatchLibrary(Pass):
    """Lowers operators to calls of an external library."""

    needs_verified: ClassVar[bool] = True

    libraries: tuple[str, ...] = ("openblas",)
    functions: tuple[str, ...] = ()
    min_work: int = 0

    def __post_init__(self) -> None:
        known = sorted({row.library for row in ROWS})
        for library in self.libraries:
            if library not in known:
                raise UsageError(f"unknown library '{library}'; known are {', '.join(known)}")

    def run(self, op: ir.Operation) -> None:
        """Rewrites the operators of the chosen graph functions."""
        rows = [row for row in ROWS if row.library in self.libraries]
        for function in graph_functions(op):
            if self.functions and function.name.value not in self.functions:
                continue
            facts = facts_of(function)
            for operator in walk_ops(function, *{row.operator for row in rows}):
                row = next((row for row in rows if self._takes(row, operator, facts)), None)
                if row is not None:
                    _dispatch(row, operator)
                    _declare(row, op)

    def _takes(self, row: Row[AnyOp], op: AnyOp, facts: Facts) -> bool:
        if not isinstance(op, row.operator) or row.match(op) is None:
            return False
        return self.min_work <= 0 or (bounds(row.work(op), facts)[0] or 0) >= self.min_work


def _dispatch(row: Row[AnyOp], op: AnyOp) -> None:
    operands = row.match(op)
    sources = [value.owner for value in op.operands if not isinstance(value.owner, ir.Block)]
    types = [annotation_of(result) for result in op.results]
    with ir.InsertionPoint(op), op.location:
        call = CallDpsLibraryOp.build(row.function, operands, types)
    replace(op, call.outs)
    for source in sources:
        if isinstance(source.opview, PermuteDimsOp) and is_unused(source):
            safe_erase(source)


def _declare(row: Row, module: ir.Operation) -> None:
    """Declares the library function at the top of the module, once."""
    block = module.regions[0].blocks[0]
    for op in block.operations:
        if "sym_name" in op.attributes and op.attributes["sym_name"].value == row.function:
            return
    with ir.InsertionPoint.at_block_begin(block), module.location:
        FunctionOp.build(row.function, row.c_symbol, row.convention, row.providers)
