"""Importers of models of other frameworks; each needs an extra of its package.

    imported = relax_mlir.frontends.onnx.from_onnx("model.onnx")
    model = relax_mlir.compile(imported)
    y = model["main"](x)

Importers are imported on first use.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["jax", "onnx", "stablehlo", "torch"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'relax_mlir.frontends' has no attribute '{name}'")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
