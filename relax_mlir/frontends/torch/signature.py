"""What a program takes and returns: parameters, state, inputs, and which results update them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from relax_mlir.errors import ModelError

from .types import as_array

UPDATES = (
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
)
STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True)
class Entry:
    """An argument of the function: a tensor, or a size that no tensor has.

    `value` is the tensor that the program holds, None for an input.
    """

    node: torch.fx.Node
    name: str
    value: torch.Tensor | None


@dataclass(frozen=True)
class Signature:
    """The arguments of a function and its results, and the arguments that results update.

    Parameters come first, then inputs, then state: what the program holds and updates.
    """

    entries: Sequence[Entry]
    results: Sequence[torch.fx.Node]
    updates: Mapping[int, str]

    @property
    def updated(self) -> set[str]:
        """The names of arguments that are updated."""
        return set(self.updates.values())

    def is_parameter(self, entry: Entry) -> bool:
        """Whether an argument never changes."""
        return entry.value is not None and entry.name not in self.updated

    @property
    def parameters(self) -> dict[str, Any]:
        """Arrays of what never changes, of the same memory where that is contiguous."""
        own = [each for each in self.entries if self.is_parameter(each)]
        return {each.name: as_array(each.value) for each in own if each.value is not None}

    @property
    def state(self) -> dict[str, Any]:
        """Arrays with copies of what the program holds and updates."""
        own = [each for each in self.entries if each.name in self.updated]
        return {each.name: as_array(each.value.clone()) for each in own if each.value is not None}


def signature_of(program: Any) -> Signature:
    """The signature of an exported program; raises ModelError for what is no tensor or size."""
    nodes = list(program.graph.nodes)
    entries = list(_entries(program, nodes))
    returned = list(nodes[-1].args[0])
    specs = program.graph_signature.output_specs
    updates: list[tuple[torch.fx.Node, str]] = []
    results = []
    for index, node in enumerate(returned):
        spec = specs[index] if index < len(specs) else None
        if spec is not None and spec.kind in UPDATES:
            updates.append((node, spec.target))
        elif spec is not None and spec.kind == OutputKind.TOKEN:
            continue
        elif spec is not None and spec.kind not in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            kind = spec.kind.name.lower().replace("_", " ")
            raise ModelError(f"returns a {kind}, which is not supported")
        elif isinstance(node, torch.fx.Node):
            results.append(node)
    first = len(results)
    signature = Signature(
        entries,
        [*results, *(node for node, _ in updates)],
        {first + index: name for index, (_, name) in enumerate(updates)},
    )

    def order(entry: Entry) -> int:
        return 0 if signature.is_parameter(entry) else 1 if entry.value is None else 2

    return Signature(sorted(entries, key=order), signature.results, signature.updates)


def _entries(program: Any, nodes: Sequence[torch.fx.Node]) -> Iterator[Entry]:
    placeholders = [node for node in nodes if node.op == "placeholder"]
    specs = program.graph_signature.input_specs
    named = {
        size.node.expr
        for node in placeholders
        if isinstance(node.meta.get("val"), torch.Tensor)
        for size in node.meta["val"].shape
        if isinstance(size, torch.SymInt)
    }
    for node, spec in zip(placeholders, specs, strict=True):
        if spec.kind not in (*STORED, InputKind.USER_INPUT, InputKind.TOKEN):
            kind = spec.kind.name.lower().replace("_", " ")
            raise ModelError(f"argument '{node.name}' is a {kind}, which is not supported")
        value = node.meta.get("val")
        if spec.kind == InputKind.TOKEN:
            continue
        if isinstance(value, torch.Tensor):
            yield _entry(program, node, spec)
        elif isinstance(value, torch.SymInt) and value.node.expr not in named:
            named.add(value.node.expr)
            yield Entry(node, node.name, None)


def _entry(program: Any, node: torch.fx.Node, spec: Any) -> Entry:
    if spec.kind == InputKind.USER_INPUT:
        return Entry(node, node.name, None)
    is_constant = spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False
    tensors = program.constants if is_constant else program.state_dict
    return Entry(node, spec.target, tensors[spec.target])
