"""Element types by their names in MLIR."""

import numpy as np

from relax_mlir.bindings import ir

DTYPES = {
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    **{f"i{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    "i1": np.dtype(bool),
}
"""NumPy's types by the names of MLIR's; those of `ml_dtypes` are not among them."""

SMALL_FLOATS = ("bf16", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ")


def mlir_element(name: str) -> ir.Type:
    """MLIR's type, in the current context."""
    return ir.Type.parse(name)


def is_float(name: str) -> bool:
    """Whether elements are floating-point values."""
    return name.startswith(("f", "bf"))


def name_of(dtype: np.dtype) -> str:
    """MLIR's name of a type of NumPy or of `ml_dtypes`."""
    if dtype.kind in "biuf":
        bits = 1 if dtype.kind == "b" else dtype.itemsize * 8
        return {"b": "i", "i": "i", "u": "ui", "f": "f"}[dtype.kind] + str(bits)
    return {"bfloat16": "bf16", **{f"float8_{n[2:].lower()}": n for n in SMALL_FLOATS[1:]}}[
        dtype.name
    ]
