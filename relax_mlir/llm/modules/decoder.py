"""A decoder as a graph: one function for every prompt and context length.

    @main(tokens: int32[n], lengths: shape [m, r], key_cache_0: [kv, c, d], value_cache_0, ...,
          weights...) -> (logits: float32[r, vocab], key_cache_0, value_cache_0, ...)

n tokens follow m cached ones in caches of capacity c, which are updated in place; the logits of the
last r tokens are returned. Models that read images take two arguments more after `lengths`,

    images: float32[k, hidden], image_rows: int32[n]

where row `image_rows[i]` of the images replaces token i, unless that is -1; and where images have
positions of their own, `coordinates: int32[n, 3]`: the time, row and column of each token. Decoders
with adapters take `adapters: int32[1]` before these, the index of one from 1 on, or 0. In a batch,
each token has its sequence and its position, and a sequence its adapter, int32[b]:

    @main(tokens: int32[n], rows: int32[r], tables: int32[b, s], sequences: int32[n],
          positions: int32[n], lengths: int32[b], key_cache_0: [p, kv, 16, d], ..., weights...)
      -> (logits: float32[r, vocab], key_cache_0, ...)

b sequences of any lengths have s pages at most, of p; the logits of tokens `rows` are returned.
Source: Llama (arXiv 2302.13971, 2307.09288) and what others changed, as
Hugging Face computes it.
"""

from collections.abc import Sequence
from dataclasses import fields
from itertools import islice

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.modules.attention import CACHED, NEW, Attention, Positions
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.modules.kv_cache import PAGE, Pages, cache_parts, visible
from relax_mlir.llm.modules.latent_attention import LatentAttention
from relax_mlir.llm.modules.networks import Mixture, Network
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    Block,
    DimLike,
    Embedding,
    LayerNorm,
    LowRank,
    Module,
    Operand,
    Parameter,
    Product,
    RmsNorm,
    Scope,
    Storage,
    Weight,
    adapters_of_tokens,
    add,
    capped,
    constant,
    scaled,
    slice_axis,
    value_of,
)
from relax_mlir.llm.modules.rotary import AXES, position_of, rotation
from relax_mlir.llm.modules.state_space import StateSpaceMixer

ROWS, CAPACITY = "r", "c"
"""Symbols: rows of logits, capacity of the caches."""
SEQUENCES, SLOTS, PAGES = "b", "s", "p"
"""Symbols of batches: sequences, pages of one, all pages."""

IMAGE_ROWS = "k"
"""Symbol: rows of images."""

FACTS = (f"{CACHED} + {NEW} <= {CAPACITY}", f"{ROWS} <= {NEW}")


def norm_of(config: DecoderConfig, source: str) -> Block:
    """A normalisation of the hidden elements, with the weights of `source`."""
    if config.norm == "rms":
        return RmsNorm(config.hidden_size, config.norm_eps, f"{source}.weight")
    return LayerNorm(config.hidden_size, config.norm_eps, source, config.norm_bias)


class Layer(Module):
    """One transformer block with its residual connections."""

    def __init__(
        self,
        config: DecoderConfig,
        index: int,
        storage: Storage,
        attention: type[Attention | LatentAttention] | None = None,
    ) -> None:
        prefix = f"model.layers.{index}"
        self.config = config
        if config.pre_norm:
            self.attention_norm = norm_of(config, f"{prefix}.input_layernorm")
        kind = attention or (Attention if config.latent is None else LatentAttention)
        self.attention: Attention | LatentAttention | StateSpaceMixer
        if config.states_of(index) is not None:
            self.attention = StateSpaceMixer(config, f"{prefix}.mamba", storage)
        else:
            self.attention = kind(config, index, f"{prefix}.self_attn", storage)
        if config.post_norm:
            self.attention_post_norm = norm_of(config, f"{prefix}.self_attn.post_norm")
        if not config.intermediate_size:
            return
        if config.pre_norm and not (config.parallel and config.parallel_norms == 1):
            self.mlp_norm = norm_of(config, f"{prefix}.post_attention_layernorm")
        experts = config.experts_of(index)
        if experts is None:
            self.mlp: Block = Network(config, f"{prefix}.mlp", config.intermediate_size, storage)
        else:
            self.mlp = Mixture(config, experts, f"{prefix}.mlp", storage)
        if config.post_norm:
            self.mlp_post_norm = norm_of(config, f"{prefix}.mlp.post_norm")
        if config.sum_norm:
            self.attention_sum_norm = norm_of(config, f"{prefix}.self_attn.sum_norm")
            self.mlp_sum_norm = norm_of(config, f"{prefix}.mlp.sum_norm")

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
        if c.sum_norm:
            total = self.attention_sum_norm(total)
        if not c.intermediate_size:
            return total, cache
        if c.parallel:
            normal = normal if c.parallel_norms == 1 else self.mlp_norm(x)
        else:
            normal = self.mlp_norm(total) if c.pre_norm else total
        out = self.mlp(normal)
        if c.post_norm:
            out = self.mlp_post_norm(out)
        out = add(total, scaled(out, c.residual_scale))
        return (self.mlp_sum_norm(out) if c.sum_norm else out), cache


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
        self.head_change = LowRank(size, {"lm_head": config.vocab_size}, storage.changes)

    def parameters(self) -> list[Parameter]:  # type: ignore[override]
        """Every parameter once, in the order of the function's arguments."""
        return list(dict.fromkeys(super().parameters()))

    def __call__(
        self,
        tokens: ir.Value,
        caches: Sequence[Sequence[ir.Value]],
        pages: Pages | None = None,
        rows: ir.Value | None = None,
        images: Sequence[ir.Value] = (),
        coordinates: ir.Value | None = None,
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Maps int32[n] to logits [r, vocab]; also returns the updated caches, flat.

        Tokens of many sequences have `pages`, and the indices of tokens with logits, int32[r].
        `images` are rows of them, and which token each replaces; `coordinates` are int32[n, 3].
        """
        c = self.config
        x = scaled(self.embedding(tokens), c.embedding_scale)
        if images:
            x = placed(x, *images)
        if c.positions:
            x = add(x, self.positions.take(position_of(ir.IntegerType.get_signless(32), pages)))
        positions = self._positions(pages, coordinates)
        updated: list[ir.Value] = []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, positions)
            updated += cache
        adapters = adapters_of_tokens()
        if rows is None:
            x = slice_axis(x, 0, f"{NEW} - {ROWS}", NEW)
        else:
            x = graph.TakeOp.build(x, rows, axis=0).result
            if adapters is not None:
                adapters = graph.TakeOp.build(adapters, rows, axis=0).result
        x = self.norm(x)
        logits = self.head_change.added(self.head.multiply(Operand(x)), x, adapters)
        if self.head_bias is not None:
            logits = add(logits, value_of(self.head_bias))
        return capped(scaled(logits, c.logit_scale), c.logit_cap), updated

    def _positions(self, pages: Pages | None, coordinates: ir.Value | None) -> Positions:
        c = self.config
        tables = [rotation(rope, pages, coordinates) for rope in c.ropes]
        if pages is not None:
            return Positions(tables, {}, pages)
        windows = {c.window_of(i) for i in range(c.num_layers)}
        masked = windows if c.attention_cap else windows - {0}
        masks = {window: visible(CACHED, NEW, window) for window in sorted(masked)}
        return Positions(tables, masks)


def placed(x: ir.Value, images: ir.Value, rows: ir.Value) -> ir.Value:
    """x [n, hidden] with row `rows[i]` of images [k, hidden] instead of row i, if not negative."""
    zero = graph.AstypeOp.build(constant(0.0), dtype=ir.IntegerType.get_signless(32)).result
    is_image = graph.GreaterEqualOp.build(rows, zero).result
    taken = graph.TakeOp.build(images, rows, axis=0).result  # which clamps negative ones
    return graph.WhereOp.build(graph.ExpandDimsOp.build(is_image, axes=[1]).result, taken, x).result


def export(model: Transformer, batched: bool = False) -> str:
    """Writes the model as the text of a module with the one function `@main`.

    With `batched`, it is that of tokens of many sequences.
    """
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        export_main(model, module, batched)
        return str(module)


def export_main(
    model: Transformer, module: ir.Module, batched: bool
) -> tuple[func.FuncOp, list[Product]]:
    """Adds `@main` to a module; returns it, and its products with matrices."""
    config, parameters = model.config, model.parameters()
    f32 = ir.F32Type.get()
    kinds, given = _cache_kinds(model, batched), _given(batched)
    if model.storage.changes.count:
        given["adapters"] = _i32([SEQUENCES if batched else 1])
    images = _images(config)
    given |= images
    names, first = list(kinds), len(given)
    inputs = [*given.values(), *kinds.values()]
    inputs += [TensorType.make(p.dims, p.element).to_mlir() for p in parameters]
    logits_type = TensorType.make([ROWS, config.vocab_size], f32).to_mlir()
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", (inputs, [logits_type, *kinds.values()]))
    _describe_arguments(main, [*given, *names, *[p.name for p in parameters]], names)
    facts = [] if batched or not config.has_attention else [*FACTS]
    facts += [f"1 <= {IMAGE_ROWS}"] if images else []
    main.attributes["graph.facts"] = ir.ArrayAttr.get([ir.StringAttr.get(f) for f in facts])
    i64 = ir.IntegerType.get_signless(64)
    main.attributes["graph.num_inputs"] = ir.IntegerAttr.get(i64, first + len(names))
    arguments = list(main.add_entry_block().arguments)
    caches = arguments[first : first + len(names)]
    values = dict(zip(parameters, arguments[first + len(names) :]))
    rest = iter(caches)
    counts = [len(_layer_caches(model, i, batched)) for i in range(config.num_layers)]
    layers = [list(islice(rest, count)) for count in counts]
    of = dict(zip(given, arguments))
    pages = Pages(*(of[each.name] for each in fields(Pages))) if batched else None
    with ir.InsertionPoint(main.entry_block):
        adapters = of.get("adapters")
        if adapters is not None and batched:
            adapters = graph.TakeOp.build(adapters, of["sequences"], axis=0).result
        with Scope(values, adapters) as scope:
            shown = [of[name] for name in images]
            logits, updated = model(
                of["tokens"], layers, pages, of.get("rows"), shown[:2], *shown[2:]
            )
        func.ReturnOp([logits, *updated])
    return main, scope.products


def _given(batched: bool) -> dict[str, ir.Type]:
    """Types of the arguments before the caches, by name."""
    tokens = _i32([NEW])
    if not batched:
        return {"tokens": tokens, "lengths": shape_value_type([CACHED, ROWS])}
    return {
        "tokens": tokens,
        "rows": _i32([ROWS]),
        "tables": _i32([SEQUENCES, SLOTS]),
        "sequences": tokens,
        "positions": tokens,
        "lengths": _i32([SEQUENCES]),
    }


def _i32(dims: Sequence[DimLike]) -> ir.Type:
    return TensorType.make(dims, ir.IntegerType.get_signless(32)).to_mlir()


def _images(config: DecoderConfig) -> dict[str, ir.Type]:
    """Types of the arguments for images, by name; none for models that read no images."""
    if config.image_id is None:
        return {}
    rows = TensorType.make([IMAGE_ROWS, config.hidden_size], ir.F32Type.get())
    kinds = {"images": rows.to_mlir(), "image_rows": _i32([NEW])}
    if config.has_coordinates:
        kinds["coordinates"] = _i32([NEW, len(AXES)])
    return kinds


def _cache_kinds(model: Transformer, batched: bool) -> dict[str, ir.Type]:
    """Types of the cache arguments by name, the parts of each layer in turn."""
    kinds: dict[str, ir.Type] = {}
    for i in range(model.config.num_layers):
        kinds |= _layer_caches(model, i, batched)
    return kinds


def _layer_caches(model: Transformer, layer: int, batched: bool) -> dict[str, ir.Type]:
    """Types of the cache arguments of a layer, by name."""
    config = model.config
    states = config.states_of(layer)
    if states is not None:
        sizes: dict[str, list[DimLike]] = {
            "input_cache": [states.taps - 1, states.mixed],
            "state_cache": [states.heads, states.head_dim, states.state],
        }
        f32 = ir.F32Type.get()
        return {
            f"{name}_{layer}": TensorType.make(dims, f32).to_mlir() for name, dims in sizes.items()
        }
    kinds = {}
    for name, columns, element in cache_parts(model.storage.cache, config.cache_columns):
        dims: list[DimLike] = [config.num_kv_heads, CAPACITY, columns]
        if batched:
            dims = [PAGES, config.num_kv_heads, PAGE, columns]
        kinds[f"{name}_{layer}"] = TensorType.make(dims, ir.Type.parse(element)).to_mlir()
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
