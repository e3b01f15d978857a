"""The rule for programs of loop nests: each nest is a launch, and the host runs one after another.

    reads and writes along different common axes    `transposes`: a group a tile of iterations
    no axes but common ones                         `points`: a thread an iteration
    long inner axes, next to each other in memory   `rows`: a group an iteration of the common axes
    else                                            `nest`: a thread an iteration of these

Needs: nothing. Leaves: a scheduled kernel; raises PassFailure at an op without loops, Refusal if
the host would need what the device computes.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.nests import Nest, clusters
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.evaluate import Evaluator
from relax_mlir.schedule.build.horizontal_reduction import combiner_of
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.vectors import Vectors
from relax_mlir.schedule.nests.emit import emit_kernel, group
from relax_mlir.schedule.nests.plan import Plan
from relax_mlir.target import Device

from .nest import DeviceNest
from .points import PointNest
from .rows import RowNest, shares_rows
from .scalars import load_in_launches
from .transposes import TransposeNest, transposed_axes

ONE_LANE = Vectors(bytes=1, registers=32)
"""A thread computes one element at a time."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules any program of supported ops."""
    module, program = read_kernel(prim_func)
    placement = assign_memory(program, fuse)
    items = group(placement, fuse)

    def body(kernel: Kernel) -> None:
        for item in items:
            if isinstance(item, Nest):
                with item.stages[-1].op.location:
                    _emitter(kernel, item, device).emit()
            else:
                kernel.run_scalar(item)
        load_in_launches(ir.InsertionPoint.current.block.owner, device)

    emit_kernel(prim_func, placement, ONE_LANE, body)
    del module  # the program refers to it
    return True


def _emitter(kernel: Kernel, nest: Nest, device: Device) -> DeviceNest:
    """What launches a nest."""
    combiners = {s: combiner_of(s, kernel.scalars) for s in nest.stages if s.has_reduction}
    plan = Plan(nest, clusters(nest, kernel.placement.inlining), lanes=1)
    plan.inner.update(dict.fromkeys(plan.clusters))
    arguments = (kernel, plan, combiners, Evaluator(kernel))
    own = DeviceNest(*arguments, device=device)
    if not any(cluster.axes for cluster in plan.clusters):
        axes = transposed_axes(nest, kernel.placement)
        if axes is None:
            return PointNest(*arguments, device=device)
        rows, columns = axes
        return TransposeNest(*arguments, device=device, rows=rows, columns=columns)
    return RowNest(*arguments, device=device) if shares_rows(own) else own
