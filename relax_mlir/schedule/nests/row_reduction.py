"""The rule for chains that share their rows: softmax, normalisations, sums and their neighbours.

    %m = max of each row                            scf.parallel over rows
    %e = exp(x - %m)                      ->          one vector loop a stage; elements of a row
    %s = sum of each row of %e                        stay in registers, or in a row of scratch
    %y = %e / %s

Exponentials of differences from the row's maximum are approximate: see `softmax_exponentials`.

Needs: nothing. Leaves: a scheduled kernel, or the function unchanged.
"""

from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.nests import Nest
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.vectors import Vectors

from .emit import emit_kernel, emit_nests, group
from .softmax_exponentials import approximate_exponentials


def schedule(prim_func: PrimFunc, vectors: Vectors, fuse: bool) -> bool:
    """Schedules a program with reductions whose stages all fit into one nest."""
    if not fuse:
        return False
    module, program = read_kernel(prim_func)
    if not any(stage.has_reduction for stage in program.stages):
        return False
    approximate_exponentials(program)
    placement = assign_memory(program)
    items = group(placement)
    if sum(isinstance(item, Nest) for item in items) != 1:
        return False
    emit_kernel(prim_func, placement, vectors, lambda kernel: emit_nests(kernel, items))
    del module  # the program refers to it
    return True
