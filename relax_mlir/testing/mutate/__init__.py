"""Damages modules at random, and finds out what the compiler makes of them.

    python -m relax_mlir.testing.mutate --inputs 2000 --seed 1

A damaged module has to be compiled or refused: with an error of its user's, at a place of it. An
exception of Python's, an end of the process, IR that does not verify after a pass, and a run
without end are failures.
"""
