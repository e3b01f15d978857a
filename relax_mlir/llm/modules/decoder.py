"""A decoder as a graph: one function for every prompt and context length.

    @main(tokens: int32[n], lengths: shape [m, r], key_cache_0: [kv, c, d], value_cache_0, ...,
          weights...) -> (logits: float32[r, vocab], key_cache_0, value_cache_0, ...)

n tokens follow m cached ones in caches of capacity c, which are updated in place; the logits of the
last r tokens are returned. Source: Llama (arXiv 2302.13971, 2307.09288) and what others changed, as
Hugging Face computes it.
"""

from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.modules.attention import CACHED, NEW, Attention, Positions
from relax_mlir.llm.modules.config import DecoderConfig, Rope
from relax_mlir.llm.modules.kv_cache import cache_parts, visible
from relax_mlir.llm.modules.networks import Mixture, Network
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    Block,
    DimLike,
    Embedding,
    LayerNorm,
    Module,
    Operand,
    Parameter,
    RmsNorm,
    Scope,
    Storage,
    Weight,
    add,
    arange,
    capped,
    multiply,
    scaled,
    slice_axis,
    value_of,
)

ROWS, CAPACITY = "r", "c"
"""Symbols: rows of logits, capacity of the caches."""

FACTS = (f"{CACHED} + {NEW} <= {CAPACITY}", f"{ROWS} <= {NEW}")


def norm_of(config: DecoderConfig, source: str) -> Block:
    """A normalisation of the hidden elements, with the weights of `source`."""
    if config.norm == "rms":
        return RmsNorm(config.hidden_size, config.norm_eps, f"{source}.weight")
    return LayerNorm(config.hidden_size, config.norm_eps, source, config.norm_bias)


class Layer(Module):
    """One transformer block with its residual connections."""

    def __init__(self, config: DecoderConfig, index: int, storage: Storage) -> None:
        prefix = f"model.layers.{index}"
        self.config = config
        if config.pre_norm:
            self.attention_norm = norm_of(config, f"{prefix}.input_layernorm")
        self.attention = Attention(config, index, f"{prefix}.self_attn", storage)
        if config.post_norm:
            self.attention_post_norm = norm_of(config, f"{prefix}.self_attn.post_norm")
        if config.pre_norm and not (config.parallel and config.parallel_norms == 1):
            self.mlp_norm = norm_of(config, f"{prefix}.post_attention_layernorm")
        experts = config.experts_of(index)
        if experts is None:
            self.mlp: Block = Network(config, f"{prefix}.mlp", config.intermediate_size, storage)
        else:
            self.mlp = Mixture(config, experts, f"{prefix}.mlp", storage)
        if config.post_norm:
            self.mlp_post_norm = norm_of(config, f"{prefix}.mlp.post_norm")

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], positions: Positions
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; also returns the updated caches."""
        c = self.config
        normal = self.attention_norm(x) if c.pre_norm else x
        mixed, cache = self.attention(normal, cache, positions)
        if c.post_norm:
            mixed = self.attention_post_norm(mixed)
        total = add(x, scaled(mixed, c.residual_scale))
        if c.parallel:
            normal = normal if c.parallel_norms == 1 else self.mlp_norm(x)
        else:
            normal = self.mlp_norm(total) if c.pre_norm else total
        out = self.mlp(normal)
        if c.post_norm:
            out = self.mlp_post_norm(out)
        return add(total, scaled(out, c.residual_scale)), cache


class Transformer(Module):
    """A whole decoder, from token ids to logits; `storage` has the formats of matrices."""

    def __init__(self, config: DecoderConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = config
        self.storage = storage
        size = config.hidden_size
        self.embedding = Embedding(config.vocab_size, size, "model.embed_tokens.weight", storage)
        if config.positions:
            name = "model.embed_positions.weight"
            self.positions = Weight(config.positions, size, [name], storage)
        self.layers = [Layer(config, index, storage) for index in range(config.num_layers)]
        self.norm = norm_of(config, "model.norm")
        self.head = self.embedding.weight
        self.head_bias: Parameter | None = None
        if not config.tie_embeddings:
            self.head = Weight(config.vocab_size, size, ["lm_head.weight"], storage)
            if config.head_bias:
                self.head_bias = Parameter((config.vocab_size,), ("lm_head.bias",))

    def parameters(self) -> list[Parameter]:  # type: ignore[override]
        """Every parameter once, in the order of the function's arguments."""
        return list(dict.fromkeys(super().parameters()))

    def __call__(
        self, tokens: ir.Value, caches: Sequence[Sequence[ir.Value]]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Maps int32[n] to logits [r, vocab]; also returns the updated caches, flat."""
        c = self.config
        x = scaled(self.embedding(tokens), c.embedding_scale)
        if c.positions:
            i32 = ir.IntegerType.get_signless(32)
            x = add(x, self.positions.take(arange(CACHED, f"{CACHED} + {NEW}", i32)))
        positions = self._positions()
        updated: list[ir.Value] = []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, positions)
            updated += cache
        x = slice_axis(x, 0, f"{NEW} - {ROWS}", NEW)
        logits = self.head.multiply(Operand(self.norm(x)))
        if self.head_bias is not None:
            logits = add(logits, value_of(self.head_bias))
        return capped(scaled(logits, c.logit_scale), c.logit_cap), updated

    def _positions(self) -> Positions:
        c = self.config
        windows = {c.window_of(i) for i in range(c.num_layers)}
        masked = windows if c.attention_cap else windows - {0}
        masks = {window: visible(CACHED, NEW, window) for window in sorted(masked)}
        return Positions([rotation(rope) for rope in c.ropes], masks)


def rotation(rope: Rope) -> tuple[ir.Value, ir.Value]:
    """cos and sin of position times frequency, [n, dims / 2]."""
    f32 = ir.F32Type.get()
    frequency = _constant(rope.inverse_frequencies())
    if rope.long_factors is not None:
        # 1 once the sequence is longer than the context of pre-training, else 0.
        over = f"min(max({CACHED} + {NEW} - {rope.original_context}, 0), 1)"
        is_long = graph.GreaterOp.build(arange(over, f"{over} + 1", f32), _constant([0.5])).result
        long = _constant(rope.inverse_frequencies(is_long=True))
        frequency = graph.WhereOp.build(is_long, long, frequency).result
    position = arange(CACHED, f"{CACHED} + {NEW}", f32)
    column = graph.ExpandDimsOp.build(position, axes=[1]).result
    angle = multiply(column, frequency)
    cos, sin = graph.CosOp.build(angle).result, graph.SinOp.build(angle).result
    return scaled(cos, rope.scale), scaled(sin, rope.scale)


def _constant(values: Sequence[float] | np.ndarray) -> ir.Value:
    data = ir.DenseElementsAttr.get(np.ascontiguousarray(values, np.float32))
    return arith.ConstantOp(data.type, data).result


def export(model: Transformer) -> str:
    """Writes the model as the text of a module with the one function `@main`."""
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        _export_main(model, module)
        return str(module)


def _export_main(model: Transformer, module: ir.Module) -> None:
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


def _cache_kinds(model: Transformer) -> dict[str, ir.Type]:
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
