"""What is in front of each thread of a group, by steps of Hillis and Steele.

    thread t has x[t]      ->      x[0] + .. + x[t - 1], and x[0] + .. + x[T - 1]

The lanes of a warp exchange values in each step, and then the warps their totals, through memory.
Where there are no warps, all values are in memory in each step.

Source: Hillis and Steele, Data parallel algorithms, 1986.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from ..launch import Group, barrier
from ..shuffles import of_lane

Combined = Callable[[ir.Value, ir.Value], ir.Value]


def prefixes(group: Group, own: ir.Value, combined: Combined) -> tuple[ir.Value, ir.Value]:
    """The total of the threads before, where there are any, and of all.

    Before the next call, threads have to wait for each other, if `is_read_late`.
    """
    return (_by_steps if group.lanes == 1 else _by_warps)(group, own, combined)


def is_read_late(group: Group) -> bool:
    """Whether threads may still read what others store to in the next call."""
    return _levels(group) % 2 == 0 if group.lanes == 1 else group.threads > group.lanes


def _by_warps(group: Group, own: ir.Value, combined: Combined) -> tuple[ir.Value, ir.Value]:
    lanes, warps = group.lanes, group.threads // group.lanes
    lane, warp = loops.mod(group.thread, lanes), loops.floor_div(group.thread, lanes)

    def below(at: Index, distance: int) -> Index:
        return loops.sub(loops.maximum(at, distance), distance)

    def steps(x: ir.Value, size: int) -> ir.Value:
        """The totals up to each lane of so many."""
        distance = 1
        while distance < size:
            more = combined(of_lane(x, below(lane, distance), lanes), x)
            x = loops.select(loops.less(lane, distance), x, more)
            distance *= 2
        return x

    total = steps(own, lanes)
    before = of_lane(total, below(lane, 1), lanes)
    if warps == 1:
        return before, of_lane(total, lanes - 1, lanes)
    memory = group.memory(warps, own.type, 0)
    is_last = loops.less(lanes - 2, lane)
    loops.if_else(is_last, lambda: memref.store(total, memory, [loops.value(warp)]))
    barrier()
    of_warps = steps(memref.load(memory, [loops.value(loops.mod(lane, warps))]), warps)
    in_front = of_lane(of_warps, below(warp, 1), lanes)
    others = loops.select(loops.less(lane, 1), in_front, combined(in_front, before))
    whole = of_lane(of_warps, warps - 1, lanes)
    return loops.select(loops.less(warp, 1), before, others), whole


def _levels(group: Group) -> int:
    return group.threads.bit_length() - 1


def _by_steps(group: Group, own: ir.Value, combined: Combined) -> tuple[ir.Value, ir.Value]:
    threads, levels = group.threads, _levels(group)
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
