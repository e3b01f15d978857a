"""Types of matrices that subgroups have together, for which MLIR has no bindings."""

import re
from dataclasses import dataclass

from relax_mlir.bindings import ir

_USES = ("AOp", "BOp", "COp")
_PATTERN = re.compile(r'!gpu\.mma_matrix<(\d+)x(\d+)x(\w+), "(\w+)">')


@dataclass(frozen=True)
class MatrixType:
    """Its `use` is 0 for A, 1 for B and 2 for sums, as SPIR-V has it."""

    rows: int
    columns: int
    element: ir.Type
    use: int

    @staticmethod
    def of(kind: ir.Type) -> "MatrixType | None":
        """The type of matrices that a type is; None for others."""
        matched = _PATTERN.fullmatch(str(kind))
        if matched is None:
            return None
        rows, columns, element, use = matched.groups()
        parsed = ir.Type.parse(element, kind.context)
        return MatrixType(int(rows), int(columns), parsed, _USES.index(use))
