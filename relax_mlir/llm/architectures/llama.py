"""The Llama decoder as a graph: one function for every prompt and context length.

    @main(tokens: int32[n], lengths: shape [m, r], key_cache_0: [kv, c, d], value_cache_0, ...,
          weights...) -> (logits: float32[r, vocab], key_cache_0, value_cache_0, ...)

n tokens follow m cached ones in caches of capacity c, which are updated in place; the logits of the
last r tokens are returned. Source: Llama (arXiv 2302.13971, 2307.09288), as Hugging Face computes
it.
"""

from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.architectures.config import LlamaConfig
from relax_mlir.llm.modules.kv_cache import attend, cache_parts
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    DimLike,
    Embedding,
    Linear,
    Module,
    Operand,
    Parameter,
    RmsNorm,
    Scope,
    Storage,
    Weight,
    add,
    arange,
    multiply,
    reshape,
    silu,
    slice_axis,
)

NEW, CACHED, ROWS, CAPACITY = "n", "m", "r", "c"
"""Symbols: new tokens, cached tokens, rows of logits, capacity of the caches."""

FACTS = (f"{CACHED} + {NEW} <= {CAPACITY}", f"{ROWS} <= {NEW}")


class Attention(Module):
    """Grouped-query attention with rotary positions over a cache."""

    def __init__(self, config: LlamaConfig, prefix: str, storage: Storage) -> None:
        self.config = config
        self.storage = storage
        heads = {"q": config.num_heads, "k": config.num_kv_heads, "v": config.num_kv_heads}
        projections = {
            f"{prefix}.{name}_proj.weight": count * config.head_dim for name, count in heads.items()
        }
        self.qkv = Linear(config.hidden_size, projections, storage)
        inputs = config.num_heads * config.head_dim
        self.out = Linear(inputs, {f"{prefix}.o_proj.weight": config.hidden_size}, storage)

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], rotation: tuple[ir.Value, ir.Value]
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; also returns the updated parts of the cache."""
        c = self.config
        query, key, value = self._heads(self.qkv(x))
        query = graph.RotaryOp.build(query, *rotation).result
        key = graph.RotaryOp.build(key, *rotation).result
        kind, rounds = self.storage.cache, self.storage.activations == "int8"
        mixed, cache = attend(kind, rounds, query, key, value, cache, CACHED, c.head_dim**-0.5)
        return self.out(reshape(mixed, [NEW, c.num_heads * c.head_dim])), cache

    def _heads(self, qkv: ir.Value) -> list[ir.Value]:
        c = self.config
        heads, begin = [], 0
        for count in (c.num_heads, c.num_kv_heads, c.num_kv_heads):
            end = begin + count * c.head_dim
            heads.append(reshape(slice_axis(qkv, 1, begin, end), [NEW, count, c.head_dim]))
            begin = end
        return heads


class Mlp(Module):
    """The gated feed-forward network: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: LlamaConfig, prefix: str, storage: Storage) -> None:
        self.inner = config.intermediate_size
        gates = {f"{prefix}.{name}_proj.weight": self.inner for name in ("gate", "up")}
        self.gate_up = Linear(config.hidden_size, gates, storage)
        down = {f"{prefix}.down_proj.weight": config.hidden_size}
        self.down = Linear(self.inner, down, storage)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [n, hidden] to [n, hidden]."""
        both = self.gate_up(x)
        gate = slice_axis(both, 1, 0, self.inner)
        up = slice_axis(both, 1, self.inner, 2 * self.inner)
        return self.down(multiply(silu(gate), up))


class Layer(Module):
    """One transformer block with its two residual connections."""

    def __init__(self, config: LlamaConfig, index: int, storage: Storage) -> None:
        prefix = f"model.layers.{index}"
        size, epsilon = config.hidden_size, config.rms_norm_eps
        self.attention_norm = RmsNorm(size, epsilon, f"{prefix}.input_layernorm.weight")
        self.attention = Attention(config, f"{prefix}.self_attn", storage)
        self.mlp_norm = RmsNorm(size, epsilon, f"{prefix}.post_attention_layernorm.weight")
        self.mlp = Mlp(config, f"{prefix}.mlp", storage)

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], rotation: tuple[ir.Value, ir.Value]
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; also returns the updated caches."""
        mixed, cache = self.attention(self.attention_norm(x), cache, rotation)
        x = add(x, mixed)
        return add(x, self.mlp(self.mlp_norm(x))), cache


class Llama(Module):
    """The whole decoder, from token ids to logits; `storage` has the formats of matrices."""

    def __init__(self, config: LlamaConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = config
        self.storage = storage
        size = config.hidden_size
        self.embedding = Embedding(config.vocab_size, size, "model.embed_tokens.weight", storage)
        self.layers = [Layer(config, index, storage) for index in range(config.num_layers)]
        self.norm = RmsNorm(size, config.rms_norm_eps, "model.norm.weight")
        self.head = self.embedding.weight
        if not config.tie_embeddings:
            self.head = Weight(config.vocab_size, size, ["lm_head.weight"], storage)

    def parameters(self) -> list[Parameter]:  # type: ignore[override]
        """Every parameter once, in the order of the function's arguments."""
        return list(dict.fromkeys(super().parameters()))

    def __call__(
        self, tokens: ir.Value, caches: Sequence[Sequence[ir.Value]]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Maps int32[n] to logits [r, vocab]; also returns the updated caches, flat."""
        x = self.embedding(tokens)
        rotation = self._rotation()
        updated: list[ir.Value] = []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, rotation)
            updated += cache
        x = slice_axis(x, 0, f"{NEW} - {ROWS}", NEW)
        return self.head.multiply(Operand(self.norm(x))), updated

    def _rotation(self) -> tuple[ir.Value, ir.Value]:
        """cos and sin of position times frequency, [n, head_dim / 2]."""
        f32 = ir.F32Type.get()
        frequencies = np.ascontiguousarray(self.config.inverse_frequencies(), np.float32)
        constant = ir.DenseElementsAttr.get(frequencies)
        frequency = arith.ConstantOp(constant.type, constant).result
        position = arange(CACHED, f"{CACHED} + {NEW}", f32)
        column = graph.ExpandDimsOp.build(position, axes=[1]).result
        angle = multiply(column, frequency)
        return graph.CosOp.build(angle).result, graph.SinOp.build(angle).result


def export(model: Llama) -> str:
    """Writes the model as the text of a module with the one function `@main`."""
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        _export_main(model, module)
        return str(module)


def _export_main(model: Llama, module: ir.Module) -> None:
    config, parameters = model.config, model.parameters()
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    kinds = _cache_kinds(model)
    names = list(kinds)
    inputs = [TensorType.make([NEW], i32).to_mlir(), shape_value_type([CACHED, ROWS])]
    inputs += kinds.values()
    inputs += [TensorType.make(p.dims, p.element).to_mlir() for p in parameters]
    logits_type = TensorType.make([ROWS, config.vocab_size], f32).to_mlir()
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", (inputs, [logits_type, *kinds.values()]))
    _describe_arguments(main, ["tokens", "lengths", *names, *[p.name for p in parameters]], names)
    arguments = list(main.add_entry_block().arguments)
    caches = arguments[2 : 2 + len(names)]
    values = dict(zip(parameters, arguments[2 + len(names) :]))
    with ir.InsertionPoint(main.entry_block), Scope(values):
        each = len(caches) // config.num_layers
        layers = [caches[i : i + each] for i in range(0, len(caches), each)]
        logits, updated = model(arguments[0], layers)
        func.ReturnOp([logits, *updated])


def _cache_kinds(model: Llama) -> dict[str, ir.Type]:
    """Types of the cache arguments by name, the parts of each layer in turn."""
    config = model.config
    kinds = {}
    for i in range(config.num_layers):
        for name, columns, element in cache_parts(model.storage.cache, config.head_dim):
            dims: list[DimLike] = [config.num_kv_heads, CAPACITY, columns]
            kinds[f"{name}_{i}"] = TensorType.make(dims, ir.Type.parse(element)).to_mlir()
    return kinds


def _describe_arguments(main: func.FuncOp, names: Sequence[str], caches: Sequence[str]) -> None:
    i64 = ir.IntegerType.get_signless(64)
    entries = []
    for name in names:
        entry: dict[str, ir.Attribute] = {"graph.name": ir.StringAttr.get(name)}
        if name in caches:
            entry["graph.inout"] = ir.IntegerAttr.get(i64, 1 + caches.index(name))
        entries.append(ir.DictAttr.get(entry))
    main.arg_attrs = entries
    main.attributes["graph.facts"] = ir.ArrayAttr.get([ir.StringAttr.get(f) for f in FACTS])
    main.attributes["graph.num_inputs"] = ir.IntegerAttr.get(i64, 2 + len(caches))
