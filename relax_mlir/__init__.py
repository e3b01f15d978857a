"""A compiler for tensor programs with symbolic shapes, on MLIR.

    exe = relax_mlir.compile("model.mlir")         # an Executable; exe["main"](x)
    print(relax_mlir.explain("model.mlir"))        # symbols, facts, memory, kernels
    exe = relax_mlir.interpret("model.mlir")       # the same in NumPy, slowly: the reference
    exe = relax_mlir.load("model.so")              # a file of `exe.save` or relax-compile
    exe = relax_mlir.compile(relax_mlir.frontends.onnx.from_onnx("model.onnx"))
    model = relax_mlir.llm.load("smollm2")         # a language model

Names are imported on first use: loading a compiled module never imports MLIR.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relax_mlir import frontends, llm
    from relax_mlir.compiler import compile
    from relax_mlir.executable import Executable, load
    from relax_mlir.explanation import explain
    from relax_mlir.interpreter import interpret
    from relax_mlir.runtime.callees import register_function
    from relax_mlir.target import Target

__version__ = "0.1.0"

_MODULE_OF = {
    "compile": "relax_mlir.compiler",
    "explain": "relax_mlir.explanation",
    "interpret": "relax_mlir.interpreter",
    "load": "relax_mlir.executable",
    "register_function": "relax_mlir.runtime.callees",
    "Executable": "relax_mlir.executable",
    "Target": "relax_mlir.target",
}

__all__ = [
    "Executable",
    "Target",
    "__version__",
    "compile",
    "explain",
    "frontends",
    "interpret",
    "llm",
    "load",
    "register_function",
]


def __getattr__(name: str) -> Any:
    if name in ("frontends", "llm"):
        return import_module(f"relax_mlir.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'relax_mlir' has no attribute '{name}'")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
