"""The encoder of Qwen2-VL and Qwen2.5-VL as a graph: one function for images of every size.

    @main(patches: float32[4 * a * b, 3 * patch^2], grid: shape [a, b], weights...)
      -> rows: float32[a * b, hidden]

The patches of a unit, 2 x 2 of them for example, follow one another, and become one row. Those of
an image rotate by their row and column, and attend to one another; with windows, which are
arguments after `grid`, most layers attend within each:

    units: int32[w, s], slots: int32[a * b], counts: int32[w]

as `qwen_config.windows_of` makes them. Source: arXiv 2409.12191, 2502.13923, as Hugging Face
computes it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relax_mlir.bindings import arith, ir
from relax_mlir.decompositions.emit import astype, broadcast_to, expand_dims, less, reduce, where
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    Block,
    DimLike,
    LayerNorm,
    Linear,
    Module,
    Parameter,
    RmsNorm,
    Storage,
    add,
    arange,
    concat,
    constant,
    matmul_transposed,
    multiply,
    reshape,
    slice_axis,
    value_of,
)
from relax_mlir.llm.vision.exporting import export_main
from relax_mlir.llm.vision.network import Network, activated
from relax_mlir.llm.vision.preprocessing import COLUMNS, ROWS
from relax_mlir.llm.vision.qwen_config import QwenVisionConfig

WINDOWS = "v"
"""Symbol: windows."""
UNITS = f"{ROWS} * {COLUMNS}"


@dataclass(frozen=True)
class _Windows:
    """What layers with windows share: see `main`; `mask` is added to scores, [v, 1, 1, keys]."""

    units: ir.Value
    slots: ir.Value
    mask: ir.Value


@dataclass(frozen=True)
class _Shared:
    """What layers share: cos and sin of each patch, and windows."""

    table: tuple[ir.Value, ir.Value]
    windows: _Windows | None


class _GatedNetwork(Block):
    """down(act(gate(x)) * up(x))."""

    def __init__(self, prefix: str, c: QwenVisionConfig, storage: Storage) -> None:
        self.config = c
        sources = {f"{prefix}.{name}_proj": c.inner for name in ("gate", "up")}
        self.inner = Linear(c.size, sources, storage, True)
        self.down = Linear(c.inner, {f"{prefix}.down_proj": c.size}, storage, True)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [n, size] to [n, size]."""
        c, both = self.config, self.inner(x)
        gate, up = (slice_axis(both, 1, i * c.inner, (i + 1) * c.inner) for i in range(2))
        return self.down(multiply(activated(gate, c.activation), up))


def _norm(c: QwenVisionConfig, source: str) -> Block:
    if c.window:
        return RmsNorm(c.size, c.epsilon, f"{source}.weight")
    return LayerNorm(c.size, c.epsilon, source, True)


class _Layer(Module):
    def __init__(self, index: int, c: QwenVisionConfig, storage: Storage) -> None:
        prefix = f"visual.blocks.{index}"
        self.config = c
        self.is_full = not c.window or index in c.full_layers
        self.attention_norm = _norm(c, f"{prefix}.norm1")
        self.qkv = Linear(c.size, {f"{prefix}.attn.qkv": 3 * c.size}, storage, True)
        self.out = Linear(c.size, {f"{prefix}.attn.proj": c.size}, storage, True)
        self.norm = _norm(c, f"{prefix}.norm2")
        if c.window:
            self.network: Block = _GatedNetwork(f"{prefix}.mlp", c, storage)
        else:
            names = {f"{prefix}.mlp.fc1": c.inner, f"{prefix}.mlp.fc2": c.size}
            self.network = Network(c.size, names, c.activation, storage, True)

    def __call__(self, x: ir.Value, shared: _Shared) -> ir.Value:
        """Maps [n, size] to [n, size]."""
        c = self.config
        count = _patches(c)
        qkv = reshape(self.qkv(self.attention_norm(x)), [count, 3, c.heads, c.head_dim])
        heads = [
            reshape(slice_axis(qkv, 1, i, i + 1), [count, c.heads, c.head_dim]) for i in range(3)
        ]
        heads[:2] = [graph.RotaryOp.build(part, *shared.table).result for part in heads[:2]]
        mixed = self._attend(heads, None if self.is_full else shared.windows)
        x = add(x, self.out(reshape(mixed, [count, c.size])))
        return add(x, self.network(self.norm(x)))

    def _attend(self, heads: list[ir.Value], windows: _Windows | None) -> ir.Value:
        """Attention of all patches, or of those of each window."""
        c = self.config
        scale, merged = float(c.head_dim**-0.5), c.preprocessing.merge**2
        if windows is None:
            heads = [expand_dims(part, [0]) for part in heads]
            return graph.BatchedAttentionOp.build(*heads, scale=scale, causal=False).result
        keys = merged * c.window**2
        parts = [
            reshape(
                _take(reshape(part, [UNITS, merged * c.size]), windows.units),
                [WINDOWS, keys, c.heads, c.head_dim],
            )
            for part in heads
        ]
        mixed = graph.BatchedAttentionOp.build(
            *parts, windows.mask, scale=scale, causal=False
        ).result
        flat = reshape(mixed, [f"{c.window**2} * {WINDOWS}", merged * c.size])
        return _take(flat, windows.slots)


def _take(x: ir.Value, indices: ir.Value) -> ir.Value:
    return graph.TakeOp.build(x, indices, axis=0).result


def _patches(c: QwenVisionConfig) -> str:
    return f"{c.preprocessing.merge**2} * {UNITS}"


class QwenEncoder(Module):
    """From patches to rows of a decoder's input."""

    def __init__(self, config: QwenVisionConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = c = config
        patch, merged = c.preprocessing.patch, c.preprocessing.merge**2
        name = "visual.patch_embed.proj.weight"
        self.filters = Parameter((c.size, 3, c.frames, patch, patch), (name,))
        self.layers = [_Layer(i, c, storage) for i in range(c.layers)]
        self.norm = _norm(c, "visual.merger.ln_q")
        names = {"visual.merger.mlp.0": merged * c.size, "visual.merger.mlp.2": c.hidden_size}
        self.merger = Network(merged * c.size, names, "gelu", storage, True)

    def __call__(self, patches: ir.Value, _: ir.Value, *windows: ir.Value) -> ir.Value:
        """See `main`."""
        c = self.config
        # All frames of an image are equal.
        filters = reduce(graph.SumOp, value_of(self.filters), [2], keepdims=False)
        area = 3 * c.preprocessing.patch**2
        x = matmul_transposed(patches, reshape(filters, [c.size, area]))
        shared = _Shared(self._table(), self._windows(*windows) if windows else None)
        for layer in self.layers:
            x = layer(x, shared)
        merged = c.preprocessing.merge**2 * c.size
        return self.merger(reshape(self.norm(x), [UNITS, merged]))

    def _table(self) -> tuple[ir.Value, ir.Value]:
        """cos and sin of row and column, one after the other, times frequency, [n, d / 2]."""
        c, merge = self.config, self.config.preprocessing.merge
        frequency = _constant(c.theta ** -(np.arange(0, c.head_dim // 2, 2) / (c.head_dim // 2)))
        angles = []
        axes: list[tuple[str, list[DimLike]]] = [
            (ROWS, [ROWS, 1, merge, 1]),
            (COLUMNS, [1, COLUMNS, 1, merge]),
        ]
        for count, dims in axes:
            each = reshape(arange("0", f"{merge} * {count}", ir.F32Type.get()), dims)
            every = broadcast_to(each, [ROWS, COLUMNS, merge, merge])
            angles.append(multiply(reshape(every, [_patches(c), 1]), frequency))
        angle = concat(angles, 1)
        return graph.CosOp.build(angle).result, graph.SinOp.build(angle).result

    def _windows(self, units: ir.Value, slots: ir.Value, counts: ir.Value) -> _Windows:
        c = self.config
        merged = c.preprocessing.merge**2
        i32 = ir.IntegerType.get_signless(32)
        keys = arange("0", f"{merged * c.window**2}", i32)
        ends = multiply(counts, astype(constant(float(merged)), i32))
        valid = expand_dims(less(keys, expand_dims(ends, [1])), [1, 2])
        mask = where(valid, constant(0.0), constant(-math.inf))
        return _Windows(units, slots, mask)


def export_qwen_encoder(model: QwenEncoder) -> str:
    """The text of a module with the encoder as `@main`."""
    c = model.config

    def inputs() -> Mapping[str, ir.Type]:
        i32 = ir.IntegerType.get_signless(32)
        patches = TensorType.make([_patches(c), 3 * c.preprocessing.patch**2], ir.F32Type.get())
        kinds = {"patches": patches.to_mlir(), "grid": shape_value_type([ROWS, COLUMNS])}
        if c.window:
            dims: dict[str, list[DimLike]] = {
                "units": [WINDOWS, c.window**2],
                "slots": [UNITS],
                "counts": [WINDOWS],
            }
            kinds |= {name: TensorType.make(each, i32).to_mlir() for name, each in dims.items()}
        return kinds

    return export_main(inputs, model, model, [f"1 <= {symbol}" for symbol in (ROWS, COLUMNS)])


def _constant(values: np.ndarray) -> ir.Value:
    data = ir.DenseElementsAttr.get(np.ascontiguousarray(values, np.float32))
    return arith.ConstantOp(data.type, data).result
