"""Language models on clusters of Ray: served by replicas, and as a step of data sets.

    serve run relax_mlir.llm.ray:app model=smollm2 num_replicas=2

rows = rows.map_batches(
    relax_mlir.llm.ray.Answerer, batch_format="pyarrow", compute=ActorPoolStrategy(size=2)
)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relax_mlir.llm.ray.answerer import Answerer
    from relax_mlir.llm.ray.application import app
    from relax_mlir.llm.ray.options import Options

_MODULE_OF = {
    "Answerer": "relax_mlir.llm.ray.answerer",
    "Options": "relax_mlir.llm.ray.options",
    "app": "relax_mlir.llm.ray.application",
}

__all__ = ["Answerer", "Options", "app"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'relax_mlir.llm.ray' has no attribute '{name}'")
    return getattr(import_module(_MODULE_OF[name]), name)
