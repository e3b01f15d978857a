"""The rule for other vectorisable programs: several nests, with scratch memory between them.

Needs: nothing. Leaves: a scheduled kernel.
"""

from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.vectors import Vectors

from .emit import emit_kernel, emit_nests, group


def schedule(prim_func: PrimFunc, vectors: Vectors, fuse: bool) -> bool:
    """Schedules any program of supported ops; raises PassFailure at an op that is not."""
    module, program = read_kernel(prim_func)
    placement = assign_memory(program, fuse)
    items = group(placement, fuse)
    emit_kernel(prim_func, placement, vectors, lambda kernel: emit_nests(kernel, items))
    del module  # the program refers to it
    return True
