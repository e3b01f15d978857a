"""PTX in NumPy: runs a kernel as a device would, and refuses what a device would not.

    program = parse(text)
    run(program, "softmax_kernel", grid=(13, 1, 1), size=(128, 1, 1), arguments=[x, y, 13])

All threads of some groups run at once: a register is an array with an element for each. Threads
that diverged meet again at the first instruction that they share. A kernel fails where

    an address is in no buffer, or not aligned     memory of a group is read before it is written
    threads of a group skip a barrier that others wait at
    two threads access a word, one of which writes, without a barrier between them, or in two groups

Source: NVIDIA, PTX ISA 8.5.
"""

from .machine import Buffer, PtxFault, run
from .program import Program, parse

__all__ = ["Buffer", "Program", "PtxFault", "parse", "run"]
