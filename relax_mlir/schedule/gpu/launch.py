"""Launches: what all threads of a grid run, which closes over values of the host.

    for_threads(n, device, body)          gpu.launch blocks(..) in (ceil(n / 256), 1, 1)
                                  ->        %i = group * 256 + thread
                                            scf.if %i < n { body(%i) }

Grids have up to three dims, since devices limit each: groups are counted through them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from relax_mlir.bindings import arith, gpu, ir, nvvm
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.target import Device
from relax_mlir.target.device import GROUP_UNIT

POINT_THREADS = 256
"""Threads of a group whose threads have nothing to do with each other."""

GROUPS = 512
"""So many groups occupy a device."""

_IDS = 12
"""The arguments of a launch: indices of group and thread, extents of grid and group."""


RESERVED = 16
"""Bytes of a group's memory that printers of code may need."""


@dataclass
class Group:
    """A running group of threads: its index, that of the thread, and memory that all share.

    As a `part`, it is the first threads of one, which have a barrier of that name.
    """

    op: ir.OpView
    index: Index
    thread: ir.Value
    threads: int
    device: Device
    _memory: dict[tuple[str, int], ir.Value] = field(default_factory=dict)
    part: int = 0

    @property
    def has_memory(self) -> bool:
        """Whether threads may still read what they share."""
        return bool(self._memory)

    @property
    def lanes(self) -> int:
        """Threads of a warp, which exchange values, or of the group if it has fewer; 1: of none."""
        lanes = min(self.threads, self.device.subgroup)
        return lanes if self.threads % lanes == 0 else 1

    def memory(self, count: int, element: ir.Type, slot: int) -> ir.Value:
        """`count` elements that the group shares; the same ones for the same slot.

        Raises Refusal if the device has no memory for them.
        """
        key = (f"{count}x{element}", slot)
        if key not in self._memory:
            kinds = [ir.MemRefType(x.type) for x in self._memory.values()]
            pairs = [(count, element), *((x.shape[0], x.element_type) for x in kinds)]
            total = sum(-(-n * element_bits(x) // 8 // GROUP_UNIT) * GROUP_UNIT for n, x in pairs)
            if total > self.device.shared_bytes:
                limit = f"a group of '{self.device}' has {self.device.shared_bytes}"
                raise Refusal(f"threads share {total} bytes, but {limit}")
            space = ir.Attribute.parse("#gpu.address_space<workgroup>")
            kind = ir.MemRefType.get([count], element, memory_space=space)
            body = self.op.regions[0].blocks[0]
            self._memory[key] = body.add_argument(kind, self.op.location)
            buffers = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(self._memory))
            self.op.attributes["workgroup_attributions"] = buffers
        return self._memory[key]

    def first(self, threads: int) -> "Group":
        """The first threads, of whole warps, where others do something else."""
        return replace(self, threads=threads, part=1)

    def barrier(self) -> None:
        """Has the threads wait for each other, and see what they stored."""
        if self.part:
            i32 = ir.IntegerType.get_signless(32)
            words = [arith.constant(i32, x) for x in (self.part, self.threads)]
            nvvm.barrier(barrier_id=words[0], number_of_threads=words[1])
        else:
            barrier()


def barrier() -> None:
    """Has all threads of the group wait for each other, and see what they stored."""
    gpu.BarrierOp()


def for_groups(count: Index, threads: int, device: Device, body: Callable[[Group], object]) -> None:
    """Launches `count` groups of `threads` threads; nothing if the count is zero."""
    limit = device.grid
    single = isinstance(count, int) and count <= limit

    def launch() -> None:
        extents = [count] if single else _folded(count, limit)

        def run(op: ir.OpView, groups: Sequence[ir.Value], thread: ir.Value) -> None:
            if single:
                body(Group(op, groups[0], thread, threads, device))
                return
            index = loops.add(groups[0], loops.mul(limit, groups[1]))
            index = loops.add(index, loops.mul(limit * limit, groups[2]))
            group = Group(op, index, thread, threads, device)
            loops.if_else(loops.less(index, count), lambda: body(group))

        _launch(extents, threads, run)

    loops.if_else(loops.less(0, count), launch)


def for_threads(count: Index, device: Device, body: Callable[[Index], object]) -> None:
    """Launches a thread for each index below `count`."""
    threads = min(POINT_THREADS, device.workgroup)
    if isinstance(count, int) and count <= threads:
        threads = count or 1
    for_tasks(count, threads, device, lambda index, _: body(index))


def for_tasks(
    count: Index, threads: int, device: Device, body: Callable[[Index, Group], object]
) -> None:
    """Launches groups of so many threads, one thread for each index below `count`."""

    def one(group: Group) -> None:
        index = loops.add(loops.mul(group.index, threads), group.thread)
        exact = isinstance(count, int) and count % threads == 0
        loops.if_else(exact or loops.less(index, count), lambda: body(index, group))

    for_groups(loops.ceil_div(count, threads), threads, device, one)


def unraveled(linear: Index, extents: Sequence[Index]) -> list[Index]:
    """The indices of nested loops in the iteration with this row-major linear index, of all."""
    indices: list[Index] = []
    for extent in reversed(extents[1:]):
        indices.append(loops.mod(linear, extent))
        linear = loops.floor_div(linear, extent)
    return [linear, *reversed(indices)] if extents else []


def _folded(count: Index, limit: int) -> list[Index]:
    """Extents of up to `limit` whose product is at least `count`."""
    rest = loops.ceil_div(count, limit)
    return [
        loops.minimum(count, limit),
        loops.minimum(rest, limit),
        loops.ceil_div(rest, limit),
    ]


def _launch(
    extents: Sequence[Index],
    threads: int,
    body: Callable[[ir.OpView, Sequence[ir.Value], ir.Value], object],
) -> None:
    """A launch of a grid; `body` gets the op, the index of the group, and that of the thread."""
    ir.Context.current.dialects["gpu"]  # loads it: ops of others have no names yet
    grid = [loops.value(x) for x in (*extents, *(1,) * (3 - len(extents)))]
    size = [loops.value(x) for x in (threads, 1, 1)]
    op = gpu.LaunchOp(grid, size)
    block = op.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        end = gpu.TerminatorOp()
    with ir.InsertionPoint(end):
        arguments = list(block.arguments)[:_IDS]
        body(op, arguments[:3], arguments[3])
