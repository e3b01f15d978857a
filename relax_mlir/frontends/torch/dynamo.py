"""The backend "relax" of `torch.compile`: graphs are compiled once for all sizes.

    model = torch.compile(model.eval(), backend="relax", dynamic=True)
    with torch.no_grad():
        y = model(x)

Graphs that need gradients, or have operators that are not supported, are run by PyTorch.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.export.graph_signature import InputKind

from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ModelError

from . import operators  # noqa: F401  # registers them
from .importer import import_program
from .registry import find

WHOLE = ("gelu", "silu", "native_layer_norm", "native_group_norm", "_softmax", "_log_softmax")
"""Operators that are not decomposed further, since schedules know more of them."""


def relax(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compiles a graph that Dynamo captured."""
    table = {op: rule for op, rule in core_aten_decompositions().items() if not _is_whole(op)}
    backend = aot_autograd(
        fw_compiler=_by_pytorch, inference_compiler=_compiled, decompositions=table
    )
    return backend(module, inputs)


def _is_whole(op: Any) -> bool:
    name = op.name().removeprefix("aten::").removesuffix(".default")
    return name in WHOLE and find(f"aten::{name}") is not None


def _by_pytorch(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return make_boxed_func(module.forward)


def _compiled(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    graph = _Graph(module)
    try:
        with make_context(), ir.Location.unknown():
            imported = import_program(graph.program, {}, ())
            main = compile(imported)["main"]
    except (ModelError, CompileError) as error:
        warnings.warn(f"PyTorch runs a graph: {error}", stacklevel=2)
        return _by_pytorch(module, inputs)
    return make_boxed_func(graph.calling(main))


class _Graph:
    """A graph as an exported program: its inputs are tensors and sizes, its outputs too."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        nodes = list(module.graph.nodes)
        self.inputs = [node for node in nodes if node.op == "placeholder"]
        (returned,) = nodes[-1].args
        self.outputs = list(returned)
        specs = [
            SimpleNamespace(kind=InputKind.USER_INPUT, arg=SimpleNamespace(value=_size_of(node)))
            for node in self.inputs
        ]
        self.program: Any = SimpleNamespace(
            graph=SimpleNamespace(nodes=_with_tensors(nodes, self.outputs)),
            graph_signature=SimpleNamespace(input_specs=specs, output_specs=[]),
            range_constraints={},
        )

    def calling(self, main: Callable[..., Any]) -> Callable[..., Any]:
        """A function of PyTorch's tensors and sizes."""
        is_tensor = [isinstance(node.meta["val"], torch.Tensor) for node in self.inputs]

        def call(*values: Any) -> list[Any]:
            known = dict(self._sizes(values))
            arrays = [_array(v) for v, own in zip(values, is_tensor, strict=True) if own]
            results = main(*arrays)
            results = iter(results if isinstance(results, tuple) else (results,))
            return [_output(node, results, known) for node in self.outputs]

        return call

    def _sizes(self, values: Sequence[Any]) -> Iterator[tuple[Any, int]]:
        """The values of the symbols that sizes of inputs are."""
        for node, value in zip(self.inputs, values, strict=True):
            own = node.meta["val"]
            pairs = zip(own.shape, value.shape) if _is_tensor(node) else [(own, value)]
            for size, actual in pairs:
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    yield size.node.expr, int(actual)


def _with_tensors(nodes: Sequence[torch.fx.Node], outputs: Sequence[Any]) -> list[Any]:
    """The nodes of a graph that returns tensors alone."""
    tensors = [node for node in outputs if _is_tensor(node)]
    return [*nodes[:-1], SimpleNamespace(op="output", args=(tensors,))]


def _is_tensor(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def _size_of(node: torch.fx.Node) -> Any:
    value = node.meta["val"]
    return None if isinstance(value, torch.Tensor) else value


def _array(tensor: torch.Tensor) -> Any:
    if tensor.dtype == torch.bfloat16:
        return tensor.detach().contiguous()
    return tensor.detach().contiguous().numpy()


def _output(node: Any, results: Any, known: dict[Any, int]) -> Any:
    """An output: of the compiled function, a size, or what is no node."""
    if not isinstance(node, torch.fx.Node):
        return node
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return int(value.node.expr.subs(known)) if isinstance(value, torch.SymInt) else value
    array = next(results)
    if value.dtype == torch.bfloat16:
        return torch.from_numpy(np.asarray(array).view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(np.asarray(array))
