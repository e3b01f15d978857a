"""Modules of PyTorch, compiled by way of `torch.export`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

import relax_mlir
from relax_mlir.errors import UsageError

from .program import NONE, decomposed, from_decomposed
from .registry import Function
from .signature import signature_of
from .types import as_array, as_tensor, is_complex


def compile(
    module: torch.nn.Module | torch.export.ExportedProgram,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    symbols: Mapping[str, str] | None = None,
    facts: Sequence[str] = (),
    operators: Mapping[str, Function] = NONE,
    target: "str | relax_mlir.Target" = "native",
    opt_level: int = 2,
) -> "Compiled":
    """Compiles a module for all sizes that `dynamic_shapes` allows.

    `args`, `kwargs` and `dynamic_shapes` are those of `torch.export.export`; a program that was
    exported needs none. `symbols`, `facts` and `operators` are those of `from_exported_program`.

    Parameters and buffers that nothing changes are constants, with the values that they have now;
    buffers that the module changes are its own, and calls update them, as they update inputs.

    Raises ModelError for a module that is not supported, CompileError as `relax_mlir.compile`, and
    what `torch.export.export` raises.
    """
    if isinstance(module, torch.export.ExportedProgram):
        program = module
    else:
        shapes = {"dynamic_shapes": dynamic_shapes}
        program = torch.export.export(module, args, dict(kwargs or {}), **shapes)
    program = decomposed(program)
    imported = from_decomposed(program, symbols or {}, facts, operators)
    return Compiled(program, relax_mlir.compile(imported, target, opt_level), imported.inputs)


class Compiled:
    """A compiled module: a function of PyTorch's tensors, in the trees of the module.

    `executable` is what NumPy's arrays can be given, of both parts along a last dim for complex
    tensors. Results have no gradients.
    """

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        executable: "relax_mlir.Executable",
        names: Sequence[str],
    ) -> None:
        self.executable = executable
        self._main, self._names = executable["main"], names
        self._tree_in, self._tree_out = program.call_spec.in_spec, program.call_spec.out_spec
        signature, specs = signature_of(program), program.graph_signature
        self._inputs = [s.arg for s in specs.input_specs if s.kind == InputKind.USER_INPUT]
        self._outputs = [s.arg for s in specs.output_specs if s.kind == OutputKind.USER_OUTPUT]
        self._updated = signature.updated
        self._complex = {
            node.name: is_complex(node.meta.get("val"))
            for node in program.graph.nodes
            if node.op == "placeholder"
        }
        self._state = {
            entry.name: entry.value.detach()
            for entry in signature.entries
            if entry.value is not None and entry.name in self._updated
        }
        self._dtypes = {
            node.name: node.meta["val"].dtype
            for node in signature.results
            if isinstance(node.meta["val"], torch.Tensor)
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module; raises UsageError for other arguments than those of the example."""
        values = {**self._state, **dict(self._given(args, kwargs))}
        arrays = {n: as_array(v) if _is_tensor(v) else v for n, v in values.items()}
        results = self._main(*(arrays[name] for name in self._names))
        for name in self._updated:
            _update(values[name], arrays[name])
        given = iter(results if isinstance(results, tuple) else (results,))
        return pytree.tree_unflatten(
            [self._output(s, given) for s in self._outputs], self._tree_out
        )

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The names of inputs, and their values."""
        names = self._tree_in.child(1).context
        if set(names) != set(kwargs):
            raise UsageError(f"the module takes the keywords {names}, but got {list(kwargs)}")
        ordered = {name: kwargs[name] for name in names}
        leaves, tree = pytree.tree_flatten((args, ordered))
        if tree != self._tree_in:
            raise UsageError(f"the module takes arguments as {self._tree_in}, but got {tree}")
        for own, leaf in zip(self._inputs, leaves, strict=True):
            if isinstance(own, ConstantArgument):
                if own.value != leaf:
                    raise UsageError(f"was compiled for {own.name} = {own.value}, but got {leaf}")
                continue
            if isinstance(leaf, torch.Tensor) and leaf.is_complex() != self._complex[own.name]:
                kind = "complex" if self._complex[own.name] else "real"
                raise UsageError(
                    f"argument '{own.name}' is {kind}, but got a tensor of {leaf.dtype}"
                )
            yield own.name, leaf

    def _output(self, spec: Any, results: Any) -> Any:
        if isinstance(spec, ConstantArgument):
            return spec.value
        if isinstance(spec, TensorArgument):
            return as_tensor(next(results), self._dtypes[spec.name])
        return next(results).item()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _update(tensor: torch.Tensor, array: np.ndarray) -> None:
    """Gives a tensor the values of its array, which may be its memory, and tells autograd."""
    if array.__array_interface__["data"][0] != tensor.data_ptr() or not tensor.is_contiguous():
        with torch.no_grad():
            tensor.copy_(as_tensor(array, tensor.dtype))
    else:
        torch.autograd.graph.increment_version(tensor)
