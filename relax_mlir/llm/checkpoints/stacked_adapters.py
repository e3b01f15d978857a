"""Adapters that requests choose: their matrices as weights of the decoder, of all adapters at once.

A matrix `M.weight` that any adapter changes has two weights more: `M.lora_A`, [1 + adapters, rank,
in], and `M.lora_B`, [1 + adapters, rank, out], which has transposed matrices times their scales.
Smaller ranks are filled up with zeros, and so are adapters that do not change it, and the first,
which is none.
"""

import re
from collections.abc import Sequence

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.checkpoints.adapters import Adapter, locations
from relax_mlir.llm.checkpoints.weights import WeightSource
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.quantization import RawTensor
from relax_mlir.llm.modules.config import Changes

_PRODUCTS = re.compile(
    r"lm_head|model\.layers\.\d+\.(self_attn\.(q|k|v|o|q_a|q_b|kv_a)_proj|"
    r"mlp\.(gate|shared_expert_gate|(shared_expert\.)?(gate|up|down)_proj))"
)
"""Matrices that rows of tokens are multiplied with, and nothing else."""


class StackedAdapters(WeightSource):
    """The weights of `source`, and those of adapters as further ones.

    Raises ModelError if an adapter is not of this model, or changes a matrix that is not
    multiplied with each token: an expert, an embedding, or a part of latent attention.
    """

    def __init__(self, source: WeightSource, adapters: Sequence[Adapter]) -> None:
        self.config, self.architecture = source.config, source.architecture
        self.where = source.where
        self._source, self._adapters = source, adapters
        self._locations = [locations(each, self.config, self.architecture) for each in adapters]
        ranks: dict[str, int] = {}
        for adapter, own in zip(adapters, self._locations):
            for name, (module, _) in own.items():
                if _PRODUCTS.fullmatch(name.removesuffix(".weight")) is None:
                    raise ModelError(
                        f"{adapter.folder}: adapts {quoted(module)}, which requests cannot choose; "
                        "the option lora adds it to the weights"
                    )
                ranks[name] = max(ranks.get(name, 0), adapter.parts[module][0].shape[0])
        self.changes = Changes(len(adapters), ranks)

    def raw(self, name: str) -> RawTensor:
        """See `WeightSource.raw`."""
        module, _, kind = name.rpartition(".")
        if kind not in ("lora_A", "lora_B"):
            return self._source.raw(name)
        matrix = f"{module}.weight"
        shape = self.config.weight_shapes()[matrix]
        size = shape[1] if kind == "lora_A" else shape[0]
        values = np.zeros((1 + len(self._adapters), self.changes.ranks[matrix], size), np.float32)
        for out, adapter, own in zip(values[1:], self._adapters, self._locations, strict=True):
            if matrix in own:
                part = _part(adapter, *own[matrix], kind)
                out[: len(part)] = part
        return RawTensor("F32", values.shape, values)

    def format(self, name: str) -> str:
        """See `WeightSource.format`."""
        return self._source.format(name)

    def stored(self, name: str) -> RawTensor:
        """See `WeightSource.stored`."""
        return self._source.stored(name)

    def stored_format(self, name: str) -> str:
        """See `WeightSource.stored_format`."""
        return self._source.stored_format(name)

    def release(self) -> None:
        """See `WeightSource.release`."""
        self._source.release()


def _part(adapter: Adapter, module: str, rows: np.ndarray | slice, kind: str) -> np.ndarray:
    """The matrix A of a module, or the transpose of rows of B times the scale: float32[rank, n]."""
    a, b = adapter.parts[module]
    if kind == "lora_A":
        return a.view().to_f32()
    return np.float32(adapter.scales[module]) * b.view().to_f32()[rows].T
