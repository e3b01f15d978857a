"""Hierarchical dataflow graphs from Python (docs/dataflow.md).

@leaf(x="f32", w="f32[k]")
def smooth(at, x, w):
    (i,) = at.ids()
    return x + 0.5 * w[i - 1]

@graph(x="f32[n]")
def main(x):
    return smooth.over("n")(each(x), whole(x))

relax_mlir.compile(module(main))["main"](array)
"""

from .nodes import (
    GraphFunction,
    Internal,
    Leaf,
    Port,
    each,
    graph,
    internal,
    leaf,
    module,
    streamed,
    whole,
)
from .scalars import Instance, Scalar, Tensor, exp, maximum, minimum, sqrt, where
from .scheduler import MappedStage, Scheduler
from .streams import Stream, stages_of
from .tasks import together
from .timeline import Span, Timeline

__all__ = [
    "GraphFunction",
    "Instance",
    "Internal",
    "Leaf",
    "MappedStage",
    "Port",
    "Scalar",
    "Scheduler",
    "Span",
    "Stream",
    "Tensor",
    "Timeline",
    "each",
    "exp",
    "graph",
    "internal",
    "leaf",
    "maximum",
    "minimum",
    "module",
    "sqrt",
    "stages_of",
    "streamed",
    "together",
    "where",
    "whole",
]
