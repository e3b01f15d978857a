"""What a function is handed in addition to tensors: texts, and objects of the host program.

    lib.texts = ["loss"]                     texts, after the operands
    lib.host_operands = array<i64: 0>        operands that are handles of objects
    lib.host_results = array<i64: 1>         results that are

The latter two are written by `relax-lower-host-objects`, which makes `i64` of objects.
"""

from collections.abc import Collection

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph.types import ShapeError

from .conventions import DLPACK
from .dialect import FunctionOp

TEXTS, HOST_OPERANDS, HOST_RESULTS = "lib.texts", "lib.host_operands", "lib.host_results"


def check_declaration(declared: FunctionOp) -> None:
    """Raises ShapeError if what a function is handed is malformed, or not of its convention."""
    texts_of(declared)
    for name in (TEXTS, HOST_OPERANDS, HOST_RESULTS):
        if name in declared.attributes and declared.convention.value != DLPACK:
            raise ShapeError(
                f"has '{name}', which functions of the convention '{DLPACK}' take, "
                f"but '{declared.convention.value}' does not"
            )


def texts_of(declared: FunctionOp) -> list[str]:
    """The texts; raises ShapeError if they are none."""
    if TEXTS not in declared.attributes:
        return []
    texts = declared.attributes[TEXTS]
    is_array = isinstance(texts, ir.ArrayAttr)
    if not is_array or not all(isinstance(text, ir.StringAttr) for text in texts):
        raise ShapeError(f"expects '{TEXTS}' to be an array of texts, but got {texts}")
    try:
        return [ir.StringAttr(text).value_bytes.decode() for text in texts]
    except UnicodeDecodeError:
        raise ShapeError(f"expects '{TEXTS}' to be UTF-8, but got {texts}") from None


def handles_of(declared: FunctionOp, num_operands: int) -> Collection[int]:
    """Which of operands and results, in that order, are handles."""
    operands, results = (
        list(ir.DenseI64ArrayAttr(declared.attributes[name])) if name in declared.attributes else []
        for name in (HOST_OPERANDS, HOST_RESULTS)
    )
    return {*operands, *(num_operands + index for index in results)}
