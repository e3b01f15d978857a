"""The weights of a model, from any file format: one naming scheme, one layout.

Names are Hugging Face's (`model.layers.3.self_attn.q_proj.weight`), projections are (out, in), and
query and key rows are in the order that `rotate_half` expects: element i of a head is rotated with
element i + head_dim/2. `LlamaConfig.weight_shapes` lists the names.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.config import LlamaConfig
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.quantization import RawTensor


class WeightSource(ABC):
    """Weights by name. Opening a source reads no weight; each call reads one from the file."""

    config: LlamaConfig

    @abstractmethod
    def raw(self, name: str) -> RawTensor:
        """Weight `name` in its storage format (read-only, memory-mapped if rows keep their order).

        Raises KeyError if the model has no such weight: see `names`.
        """

    @abstractmethod
    def format(self, name: str) -> str:
        """The format that weight `name` is stored in, one of `quantization.FORMATS`."""

    @abstractmethod
    def release(self) -> None:
        """Releases the memory of pages that were read so far; they can be read again.

        Results of `raw` stay valid: they are mapped, and read again from the file.
        """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all weights, in the order of the network."""
        return tuple(self.config.weight_shapes())

    def load_f32(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        """Weight `name`, decoded exactly into `out`, or into a new float32 array.

        It is (out, in) for a projection.
        """
        return self.raw(name).to_f32(out)


def check_shapes(where: str, config: LlamaConfig, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises ModelError unless `shapes` (by name) are exactly those of `config`.

    An extra weight is refused too: it means that the model computes something else.
    """
    expected = config.weight_shapes()
    for name, shape in expected.items():
        if name not in shapes:
            raise ModelError(f"{where}: has no weight '{name}'")
        if shapes[name] != shape:
            raise ModelError(
                f"{where}: weight '{name}' has shape {quoted(shapes[name])}; expects {shape}"
            )
    for name in shapes:
        if name not in expected:
            raise ModelError(
                f"{where}: has a weight {quoted(name)} that a Llama model does not use"
            )
