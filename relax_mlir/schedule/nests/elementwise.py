"""The rule for programs without reductions: element by element, copies, slices, gathers.

    %a = f(x); %b = g(%a, y)      ->      scf.parallel over blocks, one vector loop

Dims that all accesses can collapse are one long loop; producers are computed where they are read.

Needs: nothing. Leaves: a scheduled kernel, or the function unchanged.
"""

from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.vectors import Vectors

from .emit import emit_kernel, emit_nests, group


def schedule(prim_func: PrimFunc, vectors: Vectors, fuse: bool) -> bool:
    """Schedules a program all of whose loops are parallel."""
    module, program = read_kernel(prim_func)
    if any(stage.has_reduction for stage in program.stages):
        return False
    placement = assign_memory(program, fuse)
    items = group(placement, fuse)
    emit_kernel(prim_func, placement, vectors, lambda kernel: emit_nests(kernel, items))
    del module  # the program refers to it
    return True
