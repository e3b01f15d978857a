"""Features: chosen by index, compared with a bound, looked up in a table."""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import product

from ..emit import (
    astype,
    binary,
    dims_of,
    element_of,
    emit,
    greater,
    is_integer,
    minimum,
    rank_of,
    reshape,
    scalar,
    vector,
    where,
)


def array_feature_extractor(x: ir.Value, indices: ir.Value) -> ir.Value:
    """The elements of the last axis at indices, whatever dims these have: [..., count].

    Source: ONNX `ai.onnx.ml.ArrayFeatureExtractor`.
    """
    flat = reshape(indices, [product(dims_of(indices))])
    taken = emit(graph.TakeOp, x, flat, axis=rank_of(x) - 1)
    return reshape(taken, [1, *dims_of(taken)]) if rank_of(x) == 1 else taken


def binarizer(x: ir.Value, threshold: float = 0.0) -> ir.Value:
    """1 where x is above the threshold, else 0. Source: ONNX `ai.onnx.ml.Binarizer`."""
    return astype(greater(x, threshold), element_of(x))


def label_encoder(
    x: ir.Value,
    keys: Sequence[float],
    values: Sequence[float],
    element: ir.Type,
    default: float = -1,
) -> ir.Value:
    """The value of the key that each element is, in a type; `default` where it is none.

    Of equal keys the last one counts; a NaN among the keys is that of a NaN. Source: ONNX
    `ai.onnx.ml.LabelEncoder` of numeric keys.
    """
    if len(keys) != len(values):
        raise ShapeError(f"has {len(keys)} keys, but {len(values)} values")
    own = element_of(x)
    table = {key: value for key, value in zip(keys, values) if not math.isnan(key)}
    unknown = scalar(default, element)
    if not table:
        result = emit(graph.FullOp, unknown, shape=list(dims_of(x)))
    else:
        ordered = sorted(table)
        known = vector(ordered, own)
        position = emit(graph.SearchsortedOp, known, x, right=False)
        at = minimum(position, len(ordered) - 1)
        is_key = binary(graph.EqualOp, emit(graph.TakeOp, known, at, axis=0), x)
        chosen = vector([table[key] for key in ordered], element)
        result = where(is_key, emit(graph.TakeOp, chosen, at, axis=0), unknown)
    of_nan = [value for key, value in zip(keys, values) if math.isnan(key)]
    if of_nan and not is_integer(own):
        result = where(emit(graph.IsnanOp, x), scalar(of_nan[-1], element), result)
    return result
