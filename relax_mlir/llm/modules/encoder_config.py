"""The configuration of an encoder: the layers of a decoder, and what makes vectors of texts."""

from dataclasses import dataclass, fields
from typing import Any

from relax_mlir.llm.modules.config import DecoderConfig

POOLINGS = ("mean", "cls", "max", "lasttoken")


@dataclass(frozen=True)
class Dense:
    """A product after pooling: to `outputs` elements, with a bias or not, then tanh or nothing."""

    inputs: int
    outputs: int
    bias: bool = False
    activation: str = ""


@dataclass(frozen=True)
class EncoderConfig(DecoderConfig):
    """Layers whose tokens attend to all of their sequence, without a head of logits.

    The first of `types` vectors is added to each embedding, and the sum is normalised with
    `embedding_norm`, the results of the layers with `final_norm`. The vector of a sequence is one
    of `POOLINGS` of its tokens', through `dense` layers, of length 1 if it `is_unit`.
    """

    types: int = 0
    embedding_norm: bool = False
    final_norm: bool = False
    pooling: str = "mean"
    dense: tuple[Dense, ...] = ()
    is_unit: bool = False

    @staticmethod
    def of(config: DecoderConfig, **more: Any) -> "EncoderConfig":
        """The configuration with these layers."""
        same = {field.name: getattr(config, field.name) for field in fields(DecoderConfig)}
        return EncoderConfig(**{**same, **more, "tie_embeddings": True})

    @property
    def size(self) -> int:
        """Elements of a vector."""
        return self.dense[-1].outputs if self.dense else self.hidden_size

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """See `DecoderConfig`."""
        shapes = super().weight_shapes()
        if not self.final_norm:
            shapes = {k: v for k, v in shapes.items() if not k.startswith("model.norm.")}
        if self.types:
            shapes["model.embed_types.weight"] = (self.types, self.hidden_size)
        if self.embedding_norm:
            shapes |= self._norm_shapes("model.embed_norm")
        for i, dense in enumerate(self.dense):
            shapes[f"dense.{i}.weight"] = (dense.outputs, dense.inputs)
            if dense.bias:
                shapes[f"dense.{i}.bias"] = (dense.outputs,)
        return shapes
