"""Models of other frameworks, as the command-line tools read them."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module

from relax_mlir.analysis.parameters import give_values
from relax_mlir.bindings import ir
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.source import Imported, Source, read_source

_BOUNDS = re.compile(r"(\d+)\.\.(\d+)")
_DIM = re.compile(r"\d+|[A-Za-z_]\w*")


def read_model(path: str, dims: Sequence[str] = ()) -> Source:
    """The module of a model of ONNX or StableHLO, whose parameters are constants.

    `dims` are texts such as "batch=1..64", "batch=8" or "batch=n". Raises UsageError for another
    text, ModelError or CompileError for a model that is wrong or not supported.
    """
    chosen, facts = _dims(dims)
    imported = _importer(path)(path, chosen, facts)
    with imported.module.context, ir.Location.unknown():
        give_values(imported.module, dict(imported.parameters))
        Pipeline.parse("builtin.module(relax-bind-params)").run(imported.module)
        return read_source(imported)


def _importer(path: str) -> Callable[..., Imported]:
    """The importer of a file, by its suffix; each needs packages of its own."""
    framework = "onnx" if path.endswith(".onnx") else "stablehlo"
    module = import_module(f"relax_mlir.frontends.{framework}")
    return getattr(module, f"from_{framework}")


def _dims(texts: Sequence[str]) -> tuple[dict[str, int | str], list[str]]:
    """Other names and values of dims, and facts on them."""
    chosen: dict[str, int | str] = {}
    facts = []
    for text in texts:
        name, _, dim = text.partition("=")
        bounds = _BOUNDS.fullmatch(dim)
        if not name or not (bounds or _DIM.fullmatch(dim)):
            raise UsageError(f"expects a dim as batch=8, batch=1..64 or batch=n, but got '{text}'")
        if bounds:
            chosen[name] = name if _DIM.fullmatch(name) else "_".join(re.findall(r"\w+", name))
            facts += [f"{bounds[1]} <= {chosen[name]}", f"{chosen[name]} <= {bounds[2]}"]
        else:
            chosen[name] = dim
    return chosen, facts
