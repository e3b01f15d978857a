"""Imports ONNX models.

    imported = from_onnx("model.onnx", dims={"batch": "n"})
    model = relax_mlir.compile(imported)

Names of dims are symbols; shape arithmetic is evaluated on expressions. Needs the extra `onnx`.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.source import Imported

from . import operators  # noqa: F401  # registers them
from .importer import Wanted, import_model
from .reading import check, read
from .weights import Files

if TYPE_CHECKING:
    import onnx


def from_onnx(
    model: "onnx.ModelProto | bytes | str | os.PathLike",
    dims: Mapping[str, int | str] | None = None,
    facts: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Imported:
    """Imports a model: a `ModelProto`, its bytes, or the path of a file.

    `dims` gives names of dims of inputs other ones, or values: {"batch": "n", "height": 224}.
    `facts` are what may be assumed of them, such as "n <= 64", and is checked at each call.
    `values` are arrays for inputs by name, which are no arguments then, such as axes.

    Large constants of a file, and those in files next to it, are mapped and not read, so the file
    has to stay as it is until the model is compiled.

    Raises ModelError, which names the node, for a model that is wrong or not supported.
    """
    proto = read(model)
    check(proto)
    folder = Path(model).parent if isinstance(model, str | os.PathLike) else None
    with make_context(), ir.Location.unknown():
        return import_model(proto, dims or {}, facts, values or {}, Wanted(), Files(folder))
