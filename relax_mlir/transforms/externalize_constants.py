"""Makes large constants named data.

    %0 = arith.constant dense<[1.0, 2.0, ...]> : tensor<9999xf32>
      ->
    %0 = arith.constant dense_resource<data_1f0c...> : tensor<9999xf32>

From here on nothing prints, parses or copies their elements: `relax-to-host` makes each a symbol,
and the linker a section. Constants of up to `data.LARGE` elements, and those that repeat one
number, stay as they are. Equal ones become one, which CSE sees. Resources that a module brings
along keep their names.

Leaves: no dense constant of many different elements in a graph function; every resource has data.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.data import NO_DATA, blob, bytes_of, is_data, large_constants
from relax_mlir.passes import Pass, PassFailure


@dataclass(frozen=True)
class ExternalizeConstants(Pass):
    """Makes large constants named data."""

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
