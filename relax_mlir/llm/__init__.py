"""Language models: model files, tokenizers, sampling, and the compiled Llama decoder.

model = relax_mlir.llm.load("smollm2")
for piece in model.generate("What is a compiler?", max_tokens=100):
    print(piece, end="", flush=True)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relax_mlir.llm.generation.generation import Generation, Statistics
    from relax_mlir.llm.generation.model import LanguageModel, load
    from relax_mlir.llm.generation.session import Session

_MODULE_OF = {
    "Generation": "relax_mlir.llm.generation.generation",
    "LanguageModel": "relax_mlir.llm.generation.model",
    "Session": "relax_mlir.llm.generation.session",
    "Statistics": "relax_mlir.llm.generation.generation",
    "load": "relax_mlir.llm.generation.model",
}

__all__ = ["Generation", "LanguageModel", "Session", "Statistics", "load"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'relax_mlir.llm' has no attribute '{name}'")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
