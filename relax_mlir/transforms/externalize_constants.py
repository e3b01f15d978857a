"""Turns large constants into named blobs.

    %0 = arith.constant dense<[1.0, 2.0, ...]> : tensor<9999xf32>
      ->
    %0 = arith.constant dense_resource<data_1f0c...> : tensor<9999xf32>

After this pass nothing prints, parses or copies their elements: `relax-to-host` turns each into a
symbol, and the linker into a section. Constants of up to `data.LARGE` elements, and splats, stay.
Equal ones become equal attributes, for CSE. Existing resources of a module keep their names.

Leaves: no large dense constant but splats in a graph function; every resource has data.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.data import NO_DATA, blob, bytes_of, is_data, large_constants
from relax_mlir.passes import Pass, PassFailure


@dataclass(frozen=True)
class ExternalizeConstants(Pass):
    """Turns large constants into named blobs."""

    def run(self, op: ir.Operation) -> None:
        """Rewrites the attributes of large constants."""
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
