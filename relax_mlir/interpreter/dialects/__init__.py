"""What the ops of MLIR's dialects, and those of the graph that are no operators, do.

The op `arith.addf` is computed by `addf` in `arith.py`; Python's keywords take a `_` (`scf.if` by
`if_`). Functions are as those of `relax_mlir.interpreter.operators`, for single elements and for
arrays of them alike, since the body of a `linalg.generic` runs on all elements at once. A function
whose first parameter is `frame` gets the frame and the op before the operands, and returns what is
the result as it is stored.

Indices are Python integers, or arrays of int64 in the body of a loop nest.
"""
