"""An encoder of images as a graph: one function for every count of images.

    @main(pixels: float32[b, 3, size, size], weights...) -> rows: float32[b * rows, hidden]

Patches are rows of a transformer; what some of its layers compute is projected to the width of the
decoder. Source: CLIP (arXiv 2103.00020), SigLIP (arXiv 2303.15343), LLaVA 1.5 (arXiv 2310.03744),
as Hugging Face computes them.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    Block,
    DimLike,
    LayerNorm,
    Linear,
    Module,
    Parameter,
    Storage,
    add,
    concat,
    matmul_transposed,
    multiply,
    permute,
    reshape,
    scaled,
    slice_axis,
    value_of,
)
from relax_mlir.llm.vision.config import TowerConfig, VisionConfig
from relax_mlir.llm.vision.exporting import export_main

BATCH = "b"
"""Symbol: images."""
TOWER, PROJECTOR = "vision_tower", "multi_modal_projector"


def activated(x: ir.Value, activation: str) -> ir.Value:
    """An activation of `config.ACTIVATIONS`."""
    if activation == "quick_gelu":
        return multiply(x, graph.SigmoidOp.build(scaled(x, 1.702)).result)
    ops = {"gelu": graph.GeluOp, "gelu_tanh": graph.GeluTanhOp, "silu": graph.SiluOp}
    return ops[activation].build(x).result


class Network(Block):
    """second(act(first(x))), with the names of both."""

    def __init__(
        self, inputs: int, sizes: dict[str, int], activation: str, storage: Storage, bias: bool
    ) -> None:
        (first, inner), (second, outputs) = sizes.items()
        self.activation = activation
        self.first = Linear(inputs, {first: inner}, storage, bias)
        self.second = Linear(inner, {second: outputs}, storage, bias)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [b, n, inputs] to [b, n, outputs]."""
        return self.second(activated(self.first(x), self.activation))


class _Layer(Block):
    def __init__(self, prefix: str, c: TowerConfig, storage: Storage) -> None:
        self.config = c
        self.attention_norm = LayerNorm(c.size, c.epsilon, f"{prefix}.layer_norm1", True)
        own = f"{prefix}.self_attn"
        self.qkv = Linear(c.size, {f"{own}.{n}_proj": c.size for n in "qkv"}, storage, True)
        self.out = Linear(c.size, {f"{own}.out_proj": c.size}, storage, True)
        self.norm = LayerNorm(c.size, c.epsilon, f"{prefix}.layer_norm2", True)
        names = {f"{prefix}.mlp.fc1": c.inner, f"{prefix}.mlp.fc2": c.size}
        self.network = Network(c.size, names, c.activation, storage, True)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [b, n, size] to [b, n, size]."""
        c = self.config
        qkv = self.qkv(self.attention_norm(x))
        heads = [
            reshape(
                slice_axis(qkv, 2, i * c.size, (i + 1) * c.size),
                [BATCH, c.tokens, c.heads, c.size // c.heads],
            )
            for i in range(3)
        ]
        scale = float((c.size // c.heads) ** -0.5)
        mixed = graph.BatchedAttentionOp.build(*heads, scale=scale, causal=False).result
        x = add(x, self.out(reshape(mixed, [BATCH, c.tokens, c.size])))
        return add(x, self.network(self.norm(x)))


class Tower(Module):
    """The transformer over patches, as far as its features are read."""

    def __init__(self, c: TowerConfig, depth: int, storage: Storage) -> None:
        self.config = c
        name = f"{TOWER}.embeddings"
        self.patches = Parameter((c.size, 3, c.patch, c.patch), (f"{name}.patch_embedding.weight",))
        self.positions = Parameter((c.tokens, c.size), (f"{name}.position_embedding.weight",))
        if c.class_token:
            self.first = Parameter((c.size,), (f"{name}.class_embedding",))
            self.norm = LayerNorm(c.size, c.epsilon, f"{TOWER}.pre_layrnorm", True)
        else:
            self.bias = Parameter((c.size,), (f"{name}.patch_embedding.bias",))
        self.layers = [_Layer(f"{TOWER}.encoder.layers.{i}", c, storage) for i in range(depth)]

    def __call__(self, pixels: ir.Value) -> list[ir.Value]:
        """Maps [b, 3, image, image] to what comes before and after each layer, [b, n, size]."""
        c = self.config
        x = self._embedded(pixels)
        if c.class_token:
            row = reshape(value_of(self.first), [1, 1, c.size])
            x = concat([graph.BroadcastToOp.build(row, shape=[BATCH, 1, c.size]).result, x], 1)
        x = add(x, value_of(self.positions))
        states = [self.norm(x) if c.class_token else x]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return states

    def _embedded(self, pixels: ir.Value) -> ir.Value:
        """The product of each patch with all filters; pixels beyond the last patch are not read."""
        c = self.config
        for axis in (2, 3):
            pixels = slice_axis(pixels, axis, 0, c.grid * c.patch)
        parts = reshape(pixels, [BATCH, 3, c.grid, c.patch, c.grid, c.patch])
        area = 3 * c.patch**2
        rows = reshape(permute(parts, [0, 2, 4, 1, 3, 5]), [BATCH, c.grid**2, area])
        x = matmul_transposed(rows, reshape(value_of(self.patches), [c.size, area]))
        return x if c.class_token else add(x, value_of(self.bias))


class Encoder(Module):
    """From pixels to rows of a decoder's input."""

    def __init__(self, config: VisionConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = config
        self.tower = Tower(config.tower, max(config.layers), storage)
        names = {f"{PROJECTOR}.linear_{i}": config.hidden_size for i in (1, 2)}
        inputs = config.tower.size * len(config.layers)
        self.projector = Network(inputs, names, config.activation, storage, config.bias)

    def __call__(self, pixels: ir.Value) -> ir.Value:
        """Maps [b, 3, image, image] to [b * rows, hidden]."""
        c = self.config
        states = self.tower(pixels)
        features = concat([states[i] for i in c.layers], 2)
        if c.drops_first:
            features = slice_axis(features, 1, 1, c.tower.tokens)
        return reshape(self.projector(features), [f"{BATCH} * {c.rows}", c.hidden_size])


def export_encoder(model: Encoder) -> str:
    """The text of a module with the encoder as `@main`."""
    c = model.config
    image: list[DimLike] = [BATCH, 3, c.preprocessing.height, c.preprocessing.width]
    return export_main(
        lambda: {"pixels": TensorType.make(image, ir.F32Type.get()).to_mlir()}, model, model
    )
