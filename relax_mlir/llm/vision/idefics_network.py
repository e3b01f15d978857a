"""The encoder of Idefics 3 and SmolVLM as a graph: one function for every count of tiles.

    @main(pixels: float32[b, 3, edge, edge], weights...) -> rows: float32[b * rows, hidden]

Features of squares of patches are joined, and projected to the width of the decoder. Source: arXiv
2408.12637, 2504.05299, as Hugging Face computes it.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import TensorType
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    DimLike,
    LayerNorm,
    Linear,
    Module,
    Storage,
    permute,
    reshape,
)
from relax_mlir.llm.vision.exporting import export_main
from relax_mlir.llm.vision.idefics_config import IdeficsVisionConfig
from relax_mlir.llm.vision.network import BATCH, TOWER, Tower


class IdeficsEncoder(Module):
    """From tiles to rows of a decoder's input."""

    def __init__(self, config: IdeficsVisionConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = config
        c = config.tower
        self.tower = Tower(c, c.layers, storage)
        self.norm = LayerNorm(c.size, c.epsilon, f"{TOWER}.post_layernorm", True)
        names = {"connector.modality_projection.proj": config.hidden_size}
        self.projection = Linear(c.size * config.factor**2, names, storage)

    def __call__(self, pixels: ir.Value) -> ir.Value:
        """Maps [b, 3, edge, edge] to [b * rows, hidden]."""
        c, factor = self.config, self.config.factor
        x = self.norm(self.tower(pixels)[-1])
        side = c.tower.grid // factor
        x = reshape(x, [BATCH, side, factor, side, factor, c.tower.size])
        joined = permute(x, [0, 1, 3, 2, 4, 5])
        return self.projection(reshape(joined, [f"{BATCH} * {c.rows}", factor**2 * c.tower.size]))


def export_idefics_encoder(model: IdeficsEncoder) -> str:
    """The text of a module with the encoder as `@main`."""
    edge = model.config.preprocessing.edge
    tiles: list[DimLike] = [BATCH, 3, edge, edge]
    return export_main(
        lambda: {"pixels": TensorType.make(tiles, ir.F32Type.get()).to_mlir()}, model, model
    )
