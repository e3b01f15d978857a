"""Fuzzer: random programs over all operators of the graph dialect, compared with the interpreter.

    python -m relax_mlir.testing.fuzz --programs 1000 --seed 7

`program.py` writes a program, by the `recipes` of its operators; `expected.py` interprets it at
several sizes; `check.py` compiles it and compares; `pool.py` does so in processes that may crash;
`shrink.py` makes a failing program small.
"""

PROG = "python -m relax_mlir.testing.fuzz"
