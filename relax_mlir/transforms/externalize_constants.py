"""Turns large constants into named blobs.

    %0 = arith.constant dense<[1.0, 2.0, ...]> : tensor<9999xf32>
      ->
    %0 = arith.constant dense_resource<data_1f0c...> : tensor<9999xf32>

    %1 = arith.constant dense<2.0> : tensor<999x999xf32>
      ->
    %2 = arith.constant dense<2.0> : tensor<f32>
    %1 = "graph.full"(%2) {shape = #graph.shape<[999, 999]>}

After this pass nothing prints, parses or copies their elements: `relax-to-host` turns each into a
symbol, and the linker into a section. Constants of up to `data.LARGE` elements stay, as do splats
of less than `splat-bytes`, and of zeros, which take no bytes of a file. Equal ones become equal
attributes, for CSE. Existing resources of a module keep their names.

Leaves: no large dense constant but splats in a graph function; every resource has data.
"""

import math
from dataclasses import dataclass

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import arith, ir
from relax_mlir.data import NO_DATA, blob, bytes_of, contents, is_data, large_constants
from relax_mlir.dialects.graph import FullOp
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import rewrite_walk


@dataclass(frozen=True)
class ExternalizeConstants(Pass):
    """Turns large constants into named blobs."""

    splat_bytes: int = 1 << 20

    def run(self, op: ir.Operation) -> None:
        """Rewrites the attributes of large constants, and splats."""
        made: dict[ir.Attribute, ir.Attribute] = {}
        for constant in large_constants(op):
            value = constant.attributes["value"]
            data = bytes_of(value)
            if data is None:
                raise PassFailure(constant, NO_DATA)
            if not is_data(value):
                if value not in made:
                    made[value] = blob(value.type, data)
                constant.attributes["value"] = made[value]
        for function in graph_functions(op):
            rewrite_walk(function, self._fill)

    def _fill(self, constant: arith.ConstantOp) -> ir.Value | None:
        """What fills a tensor with the element that a constant repeats, if it is large."""
        value = constant.attributes["value"]
        if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
            return None
        found, type_ = contents(value), ir.RankedTensorType(constant.result.type)
        if found.is_zero or math.prod(found.data.shape) < self.splat_bytes:
            return None
        scalar = ir.RankedTensorType.get([], type_.element_type)
        element = ir.DenseElementsAttr.get_splat(scalar, value.get_splat_value())
        filled = FullOp.build(arith.ConstantOp(scalar, element).result, shape=found.dims).result
        filled.set_type(type_)
        return filled
