"""Matrices: triangular systems and Cholesky's factors, of batches."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, emit, rank_of
from relax_mlir.dialects import graph

from ..node import Node
from ..registry import operator


@operator("cholesky")
def cholesky(node: Node) -> ir.Value:
    """The triangle whose product with its transpose is the operand."""
    return d.cholesky(node.tensor(0), lower=node.flag("lower"))


@operator("triangular_solve")
def triangular_solve(node: Node) -> ir.Value:
    """What a triangular matrix has to be multiplied with."""
    a, b = node.tensors()
    return d.triangular_solve(
        a,
        b,
        left=node.flag("left_side"),
        lower=node.flag("lower"),
        transpose=node.keyword("transpose_a") in ("TRANSPOSE", "ADJOINT"),
        unit_diagonal=node.flag("unit_diagonal"),
    )


@operator("@lapack_spotrf_ffi", "@lapack_dpotrf_ffi")
def potrf(node: Node) -> tuple[ir.Value, ir.Value]:
    """LAPACK's factor, and for each matrix 0, or 1 if it is not positive definite.

    JAX makes NaN of a factor whose matrix has a status that is not 0.
    """
    attributes = ir.DictAttr(node.attribute("mhlo.backend_config"))
    lower = ir.IntegerAttr(attributes["uplo"]).value == ord("L")
    factor = d.cholesky(node.tensor(0), lower=lower)
    rank = rank_of(factor)
    wrong = emit(
        graph.AnyOp, emit(graph.IsnanOp, factor), axes=[rank - 2, rank - 1], keepdims=False
    )
    return factor, astype(wrong, ir.IntegerType.get_signless(32))


@operator("@lapack_strsm_ffi", "@lapack_dtrsm_ffi")
def trsm(node: Node) -> ir.Value:
    """What a triangular matrix has to be multiplied with, by LAPACK."""
    attributes = ir.DictAttr(node.attribute("mhlo.backend_config"))
    letters = {each.name: chr(ir.IntegerAttr(each.attr).value) for each in attributes}
    return d.triangular_solve(
        node.tensor(0),
        node.tensor(1),
        left=letters["side"] == "L",
        lower=letters["uplo"] == "L",
        transpose=letters["trans_x"] != "N",
        unit_diagonal=letters["diag"] == "U",
    )
