"""The backend "relax" of `torch.compile`: graphs are compiled once for all sizes.

    model = torch.compile(model.eval(), backend="relax", dynamic=True)
    with torch.no_grad():
        y = model(x)

Graphs that need gradients, or have operators that are not supported, are run by PyTorch.

With `options={"freeze": True}` weights are constants of what is compiled, laid out once, which is
compiled again when PyTorch says that one has changed: changes through `weight.data` it does not.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export.graph_signature import InputKind

from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ModelError, UsageError
from relax_mlir.source import Imported

from . import operators  # noqa: F401  # registers them
from .importer import import_program
from .program import NONE
from .registry import find
from .rewritten import REWRITTEN
from .signature import signature_of
from .types import as_array, as_tensor

OPTIONS = ("freeze",)
CHANGES = 3
"""How often weights that are constants may change, before they become arguments."""

WHOLE = ("gelu", "silu", "native_layer_norm", "native_group_norm", "_softmax", "_log_softmax")
"""Operators that are not decomposed further, since schedules know more of them."""


def relax(
    module: torch.fx.GraphModule, inputs: Sequence[Any], options: Mapping[str, Any] = NONE
) -> Callable[..., Any]:
    """Compiles a graph that Dynamo captured; raises UsageError for an unknown option."""
    for name in options:
        if name not in OPTIONS:
            raise UsageError(f"unknown option '{name}' of the backend; there is {OPTIONS[0]}")
    table = {op: rule for op, rule in core_aten_decompositions().items() if not _is_whole(op)}
    compiler = partial(_compiled, freeze=bool(options.get("freeze")))
    backend = aot_autograd(
        fw_compiler=_trained,
        bw_compiler=_by_pytorch,
        inference_compiler=compiler,
        decompositions={**table, **REWRITTEN},
    )
    return backend(module, inputs)


def _is_whole(op: Any) -> bool:
    name = op.name().removeprefix("aten::").removesuffix(".default")
    return name in WHOLE and find(f"aten::{name}") is not None


def _trained(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    _warn("it needs gradients; torch.no_grad() says that it does not")
    return _by_pytorch(module, inputs)


def _warn(reason: object) -> None:
    warnings.warn(f"PyTorch runs a graph: {reason}", stacklevel=3)


def _by_pytorch(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return make_boxed_func(module.forward)


def _compiled(
    module: torch.fx.GraphModule, inputs: Sequence[Any], freeze: bool
) -> Callable[..., Any]:
    graph = _Graph(module)
    try:
        # Constants of the graph have elements, unlike what it is traced with.
        with unset_fake_temporarily(), make_context(), ir.Location.unknown():
            imported = import_program(graph.program, {}, ())
        main = _Frozen(imported, graph.weights()) if freeze else _Plain(compile(imported)["main"])
    except (ModelError, CompileError) as error:
        _warn(error)
        return _by_pytorch(module, inputs)
    return make_boxed_func(graph.calling(main))


class _Plain:
    """A function that takes all tensors of a graph at each call."""

    def __init__(self, main: Callable[..., Any]) -> None:
        self._main = main

    def __call__(self, values: Sequence[Any]) -> Any:
        return self._main(*map(_array, values))


class _Frozen:
    """A function whose weights are constants: it is compiled again when one has changed.

    `weights` are their positions among the arguments.
    """

    def __init__(self, imported: Imported, weights: Sequence[int]) -> None:
        self._imported, self._weights = imported, weights
        self._names = [imported.inputs[index] for index in weights]
        self._seen: list[tuple[torch.Tensor, int]] = []
        self._main: Callable[..., Any] | None = None
        self._changes = 0

    def __call__(self, values: Sequence[Any]) -> Any:
        weights = [values[index] for index in self._weights]
        if self._changes > CHANGES or any(each.is_inference() for each in weights):
            self._weights, weights = [], []
        if self._main is None or not self._are_seen(weights):
            arrays = {n: as_array(t) for n, t in zip(self._names, weights)}
            self._main = compile(self._imported, parameters=arrays)["main"]
            self._seen = [(each, each._version) for each in weights]
            self._changes += 1
        return self._main(*(_array(v) for i, v in enumerate(values) if i not in self._weights))

    def _are_seen(self, weights: Sequence[torch.Tensor]) -> bool:
        return len(weights) == len(self._seen) and all(
            own is each and own._version == version
            for own, (each, version) in zip(weights, self._seen)
        )


SIZES: Mapping[Any, Callable[[Any], Any]] = {
    torch.SymInt: int,
    torch.SymFloat: float,
    torch.SymBool: bool,
}
"""What sizes and conditions on them are where they are known."""


class _Graph:
    """A graph as an exported program: its inputs are tensors and sizes, its outputs too."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        nodes = list(module.graph.nodes)
        self.inputs = [node for node in nodes if node.op == "placeholder"]
        (returned,) = nodes[-1].args
        self.outputs = list(returned)
        given = (size for node in self.inputs for size in _extents(node.meta["val"]))
        self._given = {size.node.expr for size in given if _is_symbol(size)}
        specs = [
            SimpleNamespace(kind=InputKind.USER_INPUT, arg=SimpleNamespace(value=_size_of(node)))
            for node in self.inputs
        ]
        self.program: Any = SimpleNamespace(
            graph=SimpleNamespace(nodes=self._with_computed(nodes)),
            graph_signature=SimpleNamespace(input_specs=specs, output_specs=[]),
            range_constraints=self._ranges(),
        )

    def _ranges(self) -> dict[Any, Any]:
        """The ranges of symbols that are sizes of inputs, for which PyTorch guards."""
        extents = (size for node in self.inputs for size in _extents(node.meta["val"]))
        symbols = [size.node for size in extents if _is_symbol(size)]
        return {node.expr: node.shape_env.var_to_range[node.expr] for node in symbols}

    def weights(self) -> list[int]:
        """The positions of parameters and buffers of the module among the arguments."""
        context = torch._guards.TracingContext.try_get()
        metadata = None if context is None else context.fw_metadata
        static = () if metadata is None else metadata.static_input_indices
        own = {self.inputs[index] for index in static}
        return [index for index, node in enumerate(self._taken()) if node in own]

    def _taken(self) -> list[torch.fx.Node]:
        """The inputs that are arguments."""
        return [entry.node for entry in signature_of(self.program).entries]

    def calling(self, main: Callable[..., Any]) -> Callable[..., Any]:
        """A function of PyTorch's tensors and sizes."""
        taken = self._taken()

        def call(*values: Any) -> list[Any]:
            given = dict(zip(self.inputs, values, strict=True))
            known = dict(self._sizes(values))
            results = main([given[node] for node in taken])
            results = iter(results if isinstance(results, tuple) else (results,))
            return [self._output(node, results, known) for node in self.outputs]

        return call

    def _with_computed(self, nodes: Sequence[torch.fx.Node]) -> list[Any]:
        """The nodes of a graph that returns only what is computed."""
        computed = [node for node in self.outputs if self._is_computed(node)]
        return [*nodes[:-1], SimpleNamespace(op="output", args=(computed,))]

    def _is_computed(self, node: Any) -> bool:
        """Whether an output is a tensor, or a size that the inputs do not say."""
        if not isinstance(node, torch.fx.Node):
            return False
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            return True
        return type(value) in SIZES and not value.node.expr.free_symbols <= self._given

    def _output(self, node: Any, results: Any, known: dict[Any, int]) -> Any:
        """An output: of the compiled function, a size or a condition, or what is no node."""
        if not isinstance(node, torch.fx.Node):
            return node
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            return as_tensor(next(results), value.dtype)
        if self._is_computed(node):
            return next(results).item()
        size = SIZES.get(type(value))
        return value if size is None else size(value.node.expr.subs(known))

    def _sizes(self, values: Sequence[Any]) -> Iterator[tuple[Any, int]]:
        """The values of the symbols that sizes of inputs are."""
        for node, value in zip(self.inputs, values, strict=True):
            for size, actual in zip(_extents(node.meta["val"]), _extents(value)):
                if _is_symbol(size):
                    yield size.node.expr, int(actual)


def _extents(value: Any) -> Sequence[Any]:
    """The sizes of a tensor, or a size itself."""
    return value.shape if isinstance(value, torch.Tensor) else [value]


def _is_symbol(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and size.node.expr.is_Symbol


def _size_of(node: torch.fx.Node) -> Any:
    value = node.meta["val"]
    return None if isinstance(value, torch.Tensor) else value


def _array(value: Any) -> Any:
    return as_array(value) if isinstance(value, torch.Tensor) else value
