"""The semantics of MLIR's dialects, and of the graph's ops that are not operators.

The op `arith.addf` is computed by `addf` in `arith.py`; Python's keywords take a `_` (`scf.if` by
`if_`). Functions follow the conventions of `relax_mlir.interpreter.operators`, and take single
elements and arrays alike, since the body of a `linalg.generic` runs on all elements at once. A
function whose first parameter is `frame` gets the frame and the op before the operands, and returns
stored elements.

Indices are Python integers, or arrays of int64 in the body of a loop nest.
"""
