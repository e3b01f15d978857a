"""What is in front of each thread of a group, by steps of Hillis and Steele.

    thread t has x[t]      ->      x[0] + .. + x[t - 1], and x[0] + .. + x[T - 1]

Source: Hillis and Steele, Data parallel algorithms, 1986.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from ..launch import Group, barrier


def prefixes(
    group: Group, own: ir.Value, combined: Callable[[ir.Value, ir.Value], ir.Value]
) -> tuple[ir.Value, ir.Value]:
    """The total of the threads before, where there are any, and of all.

    Before threads store to the same memory again, they have to wait for each other.
    """
    threads, levels = group.threads, group.threads.bit_length() - 1
    memory = group.memory(2 * threads, own.type, 0)

    def get(side: Index, thread: Index) -> ir.Value:
        return memref.load(memory, [loops.value(loops.add(side, thread))])

    def level(i: ir.Value) -> None:
        barrier()
        side = loops.mul(arith.andi(i, loops.value(1)), threads)
        width = arith.shli(loops.value(1), i)
        own = get(side, group.thread)
        more = loops.value_if(
            loops.less(width, loops.add(group.thread, 1)),
            lambda: combined(get(side, loops.sub(group.thread, width)), own),
            own,
        )
        other = loops.sub(threads, side)
        memref.store(more, memory, [loops.value(loops.add(other, group.thread))])

    memref.store(own, memory, [group.thread])
    loops.for_range(0, levels, 1, level)
    barrier()
    side = levels % 2 * threads
    before = loops.sub(loops.maximum(group.thread, 1), 1)
    return get(side, before), get(side, threads - 1)
