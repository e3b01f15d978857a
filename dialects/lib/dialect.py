"""The `lib` dialect object and `lib.function`."""

from collections.abc import Sequence

from relax_mlir.bindings import ext, ir


class Lib(ext.Dialect, name="lib"):
    """Functions that other people's libraries provide."""


class FunctionOp(Lib.Operation, name="function"):
    """Declares a library function that `graph.call_dps_library` may call.

        "lib.function"() {sym_name = "openblas.sgemm", c_symbol = "scipy_cblas_sgemm64_",
                          convention = "cblas_gemm", libraries = ["scipy-openblas64"]} : () -> ()

    `convention` names how operands become C arguments, `libraries` lists providers in order
    of preference; they are searched when the compiled module is loaded.
    """

    sym_name: ir.StringAttr
    c_symbol: ir.StringAttr
    convention: ir.StringAttr
    libraries: ir.ArrayAttr

    @classmethod
    def build(
        cls, name: str, c_symbol: str, convention: str, libraries: Sequence[str]
    ) -> "FunctionOp":
        """Creates the declaration at the insertion point."""
        string = ir.StringAttr.get
        return cls(
            string(name),
            string(c_symbol),
            string(convention),
            ir.ArrayAttr.get([string(library) for library in libraries]),
        )
