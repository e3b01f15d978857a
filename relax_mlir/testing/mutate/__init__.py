"""Mutates modules at random, and checks that the compiler does not crash on them.

    python -m relax_mlir.testing.mutate --inputs 2000 --seed 1

A mutant must be compiled or refused, with a located user error. A Python exception, the death of
the process, IR that does not verify after a pass, and a timeout are failures.
"""
