"""Kernels of devices in NumPy: all threads of a launch at once, with checks that devices lack.

A value is an array with an element for each running thread, or one element if it is the same for
all. A branch or loop that only some threads take runs on the values of those. A launch fails where

    an index is out of bounds                 threads of a group skip a barrier that others wait at
    a thread divides an integer by zero       memory of a group is read before it is written
    two threads access a word, one of which writes, without a barrier between them, or in two groups

Threads may meet all others of their group, a part of them, or wait for a barrier in memory
(`mbarriers.py`), at which those of another branch arrive: branches run in turn (`branches.py`).

So no order of threads that a device may choose gives another result.
"""

from .launch import run_launch

__all__ = ["run_launch"]
