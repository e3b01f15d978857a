"""Features, labels and trees: the operators of `ai.onnx.ml` on values."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.errors import ModelError

from ...elements import mlir_element
from ..node import Node
from ..registry import operator

DOMAIN = "ai.onnx.ml"
KINDS = {"int64s": "i64", "floats": "f32"}


@operator("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(node: Node) -> ir.Value:
    """Columns by indices."""
    return d.array_feature_extractor(node.tensor(0), node.tensor(1))


@operator("Binarizer", domain=DOMAIN)
def binarizer(node: Node) -> ir.Value:
    """1 above a threshold, else 0."""
    return d.binarizer(node.tensor(0), node.attribute("threshold", 0.0))


@operator("LabelEncoder", domain=DOMAIN, since=2)
def label_encoder(node: Node) -> ir.Value:
    """The value of the key that each element is."""
    keys, _ = _entries(node, "keys")
    values, element = _entries(node, "values")
    usual = {"i64": ("default_int64", -1), "f32": ("default_float", 0.0)}[element]
    default = node.attribute("default_tensor", None)
    if default is not None:
        unknown, element = default.array.reshape(-1)[0].item(), default.element
    else:
        unknown = node.attribute(*usual)
    return d.label_encoder(node.tensor(0), keys, values, mlir_element(element), unknown)


def _entries(node: Node, which: str) -> tuple[list[float], str]:
    """The keys or values of a table, and the name of their type."""
    if node.has(f"{which}_tensor"):
        known = node.attribute(f"{which}_tensor")
        return known.array.reshape(-1).tolist(), known.element
    for kind, element in KINDS.items():
        if node.has(f"{which}_{kind}"):
            return node.attribute(f"{which}_{kind}"), element
    raise ModelError(f"has no {which} that are integers or floats")
