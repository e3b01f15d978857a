"""Arithmetic and proofs on dims; only this package simplifies or compares expressions.

>>> from relax_mlir.symbolic import Facts, at_most, equal, parse
>>> str(parse("n*2 + n"))
'3*n'
>>> equal("n floordiv 16 * 16", "n", Facts.parse(["n mod 16 == 0"])).proved
True
>>> at_most("n", "2048").counterexample
{'n': 2049}
"""

from relax_mlir.symbolic.expr import (
    Expr,
    SymbolicError,
    const,
    maximum,
    minimum,
    product,
    sym,
)
from relax_mlir.symbolic.facts import Fact, Facts
from relax_mlir.symbolic.folding import simplify
from relax_mlir.symbolic.linear import JointSolution, solve_jointly
from relax_mlir.symbolic.parser import as_expr, parse
from relax_mlir.symbolic.prove import (
    Verdict,
    at_most,
    bounds,
    differ,
    equal,
    exceed,
    holds,
    linear_in,
    solve,
    solve_by_symbols,
)

__all__ = [
    "Expr",
    "Fact",
    "Facts",
    "JointSolution",
    "SymbolicError",
    "Verdict",
    "as_expr",
    "at_most",
    "bounds",
    "const",
    "differ",
    "equal",
    "exceed",
    "holds",
    "linear_in",
    "maximum",
    "minimum",
    "parse",
    "product",
    "simplify",
    "solve",
    "solve_by_symbols",
    "solve_jointly",
    "sym",
]
