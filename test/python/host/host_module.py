"""Modules from calls of kernels that are written by hand, past the passes on graphs and tensors."""

from collections.abc import Sequence
from pathlib import Path

from call_segments import segments

from relax_mlir.bindings import func, ir
from relax_mlir.codegen import building
from relax_mlir.dialects import make_context
from relax_mlir.executable import Executable, load
from relax_mlir.passes import Pipeline
from relax_mlir.target import Target

KERNEL = "attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64}"


def build(text: str, folder: Path, passes: str = "relax-to-host") -> Executable:
    """Runs passes on the text, the last of which makes host code, and loads what is built of it."""
    target = Target.parse("native")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse(f"builtin.module({passes})").run(module)
        exports = [
            op.name.value
            for op in module.body.operations
            if isinstance(op, func.FuncOp) and op.name.value.startswith(("rx_fn_", "rx_metadata"))
        ]
        with building(target) as build:
            data = b"".join(build.finish(module, exports))
    path = folder / "module.so"
    path.write_bytes(data)
    return load(path)


def call(
    kernel: str,
    tensors: Sequence[str],
    types: Sequence[str],
    symbols: str = "",
    updates: bool = False,
) -> str:
    """The text of a call of a kernel that fills its last tensor, or updates it."""
    updated = "array<i64: 0>" if updates else "array<i64>"
    return (
        f'"graph.call_dps"({", ".join(tensors)}) {{callee = @{kernel}, num_outs = 1 : i64, '
        f"sym_args = #graph.shape<[{symbols}]>, updates = {updated}, "
        f"{segments(len(tensors), 0)}}} : "
        f"({', '.join(types)}) -> ()"
    )


def allocate(type_: str, storage: str = "", offset: str = "0") -> str:
    """The text of an allocation of a tensor, in a storage or by itself."""
    held = "!graph.storage" if storage else ""
    return (
        f'"graph.alloc_tensor"({storage}) {{offset = #graph.shape<[{offset}]>, '
        f"operandSegmentSizes = array<i32: {int(bool(storage))}>}} : ({held}) -> {type_}"
    )
