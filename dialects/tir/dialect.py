"""The `tir` dialect object and its attributes."""

from relax_mlir.bindings import ext, ir


class Tir(ext.Dialect, name="tir"):
    """Loop-level tensor programs: upstream bodies (linalg, scf, arith), our annotations."""


class PatternAttr(Tir.Attribute, name="pattern"):
    """Compute pattern found by analysis, `#tir.pattern<"element_wise">` (paper Algorithm 1)."""

    kind: ir.StringAttr
