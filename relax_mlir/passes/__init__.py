"""Passes and the pipelines that run them, ours and MLIR's in one text.

    @dataclass(frozen=True)
    class FuseOps(Pass):            # in transforms/fuse_ops.py: the pass `relax-fuse-ops`
        max_size: int = 8           # its option `max-size`

        def run(self, op: ir.Operation) -> None: ...

    Pipeline.parse("builtin.module(relax-fuse-ops{max-size=4},symbol-dce)").run(module)

`relax_mlir.passes.base` says how options are written.
"""

from relax_mlir.errors import PipelineError
from relax_mlir.passes.base import Pass, PassFailure
from relax_mlir.passes.elements import find_pass, load_passes, loaded_passes
from relax_mlir.passes.names import describe, own_passes
from relax_mlir.passes.pipeline import Pipeline
from relax_mlir.passes.timing import Timing
from relax_mlir.passes.upstream import run_upstream

__all__ = [
    "Pass",
    "PassFailure",
    "Pipeline",
    "PipelineError",
    "Timing",
    "describe",
    "find_pass",
    "load_passes",
    "loaded_passes",
    "own_passes",
    "run_upstream",
]
