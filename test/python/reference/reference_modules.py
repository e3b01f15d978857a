"""Writes modules of a few lines as text, runs passes on them, and reads what is left of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import Annotation, TensorType, annotation_of
from relax_mlir.passes import Pipeline
from relax_mlir.rewriting import walk_ops


def tensor(*dims: int | str | None, element: str = "f32") -> str:
    """The type of a tensor as text; None is an unknown dim."""
    extents = "".join(f"{dim}x" if isinstance(dim, int) else "?x" for dim in dims)
    if not any(isinstance(dim, str) for dim in dims):
        return f"tensor<{extents}{element}>"
    texts = ["?" if dim is None else dim for dim in dims]
    shape = ", ".join(str(dim) if isinstance(dim, int) else f'"{dim}"' for dim in texts)
    return f"tensor<{extents}{element}, #graph.shape<[{shape}]>>"


@contextmanager
def after(text: str, *passes: str) -> Iterator[ir.Module]:
    """The module after some passes, in its context."""
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        Pipeline.parse(f"builtin.module({','.join(passes)})").run(module)
        yield module


def find(module: ir.Module, name: str) -> func.FuncOp:
    """The function of that name."""
    return next(f for f in walk_ops(module.operation, func.FuncOp) if f.name.value == name)


def operations(function: func.FuncOp) -> list[str]:
    """Names of the ops of a function without their dialect, the return left out."""
    names = [op.operation.name for op in function.entry_block.operations]
    return [re.sub(r"^graph\.", "", name) for name in names if name != "func.return"]


def results(function: func.FuncOp) -> list[Annotation]:
    """Annotations of what a function returns."""
    return [annotation_of(type_) for type_ in function.type.results]


def of(*dims: int | str | None, element: str = "f32") -> TensorType:
    """The annotation of a tensor."""
    return TensorType.make(dims, ir.Type.parse(element))
