"""What the standard says of a node: its inputs, how many outputs it has, and its attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import onnx

from relax_mlir.errors import ModelError

KINDS = onnx.AttributeProto.AttributeType


@dataclass(frozen=True)
class Schema:
    """The least and most inputs and outputs of an operator, and the types of its attributes.

    `variables` are names of types: inputs of one name have one element type. The last is that of
    all further inputs; an empty one says nothing.
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    kinds: Mapping[str, int]
    required: tuple[str, ...]
    variables: tuple[str, ...]


@cache
def schema_of(domain: str, name: str, version: int) -> Schema | None:
    """The schema of an operator of an opset; None if the standard has none."""
    try:
        own = onnx.defs.get_schema(name, version, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return None
    if own.deprecated:
        return None
    return Schema(
        (own.min_input, own.max_input),
        (own.min_output, own.max_output),
        {each.name: int(each.type.value) for each in own.attributes.values()},
        tuple(each.name for each in own.attributes.values() if each.required),
        tuple(_variable(each) for each in own.inputs),
    )


def _variable(formal: "onnx.defs.OpSchema.FormalParameter") -> str:
    is_known = "(" in formal.type_str or not formal.is_homogeneous
    return "" if is_known else formal.type_str


def check_node(proto: "onnx.NodeProto", version: int) -> None:
    """Raises ModelError where a node has inputs, outputs or attributes that it cannot have."""
    schema = schema_of(proto.domain, proto.op_type, version)
    if schema is None:
        return
    for names, bounds, what in (
        (proto.input, schema.inputs, "input"),
        (proto.output, schema.outputs, "output"),
    ):
        count = max((i + 1 for i, name in enumerate(names) if name), default=0)
        if not bounds[0] <= count <= bounds[1]:
            raise ModelError(f"has {_counted(count, what)}, where {_range(bounds)} expected")
    for each in proto.attribute:
        if each.ref_attr_name:
            raise ModelError(f"has attribute '{each.name}' of a function, but is in none")
        if each.name not in schema.kinds:
            raise ModelError(
                f"has attribute '{each.name}', which {proto.op_type} of opset {version} has not"
            )
        kind = schema.kinds[each.name]
        if each.type != kind:
            raise ModelError(
                f"has attribute '{each.name}' of type {KINDS.Name(each.type).lower()}, "
                f"where {KINDS.Name(kind).lower()} is expected"
            )
    given = {each.name for each in proto.attribute}
    missing = next((name for name in schema.required if name not in given), None)
    if missing is not None:
        raise ModelError(f"has no attribute '{missing}'")


def check_elements(proto: "onnx.NodeProto", version: int, elements: Sequence[str | None]) -> None:
    """Raises ModelError for inputs of several element types, where the standard says one.

    `elements` are their names; None for what is no tensor.
    """
    schema = schema_of(proto.domain, proto.op_type, version)
    if schema is None or not schema.variables:
        return
    seen: dict[str, str] = {}
    for index, element in enumerate(elements):
        variable = schema.variables[min(index, len(schema.variables) - 1)]
        if variable and element and seen.setdefault(variable, element) != element:
            raise ModelError(f"expects one element type, but got {seen[variable]} and {element}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _range(bounds: tuple[int, int]) -> str:
    least, most = bounds
    if least == most:
        return f"{least} {'is' if least == 1 else 'are'}"
    return f"{least} to {most} are" if most < 1 << 20 else f"{least} or more are"
