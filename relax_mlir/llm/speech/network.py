"""Whisper's encoder and decoder as graphs.

    @main(mel: float32[mels, 2 * s], weights...) -> (keys_0: float32[s, heads, d], values_0, ...)

encodes a window, and projects it for each layer of the decoder;

    @main(tokens: int32[n], lengths: shape [m], keys_0, values_0, ..., key_cache_0: [heads, c, d],
          value_cache_0, ..., weights...) -> (logits: float32[n, vocab], key_cache_0, ...)

decodes n tokens after m cached ones, for which it reads what the encoder made. The s positions of
a window, and the widths, are those of the model. Source: arXiv 2212.04356, as Hugging Face computes
it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.convolution import conv
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.modules.attention import CACHED, NEW
from relax_mlir.llm.modules.kv_cache import Reading, attend
from relax_mlir.llm.modules.nn import (
    F32_STORAGE,
    Embedding,
    LayerNorm,
    Linear,
    Module,
    Operand,
    Parameter,
    Scope,
    Storage,
    Weight,
    add,
    arange,
    dims_of,
    permute,
    reshape,
    scaled,
    value_of,
)
from relax_mlir.llm.speech.config import WhisperConfig

CAPACITY = "c"
EPSILON = 1e-5
Pair = tuple[ir.Value, ir.Value]


class _Attention(Module):
    """Projections of queries, keys (which have no bias), values, and results."""

    def __init__(self, prefix: str, size: int, heads: int, storage: Storage) -> None:
        def linear(name: str) -> Linear:
            return Linear(size, {f"{prefix}.{name}_proj": size}, storage, name != "k")

        self.heads, self.size = heads, size
        self.q, self.k, self.v, self.out = (linear(name) for name in ("q", "k", "v", "out"))

    @property
    def scale(self) -> float:
        """Of scores."""
        return float((self.size // self.heads) ** -0.5)

    def split(self, x: ir.Value) -> ir.Value:
        """[n, size] as [n, heads, d]."""
        return reshape(x, [dims_of(x)[0], self.heads, self.size // self.heads])

    def joined(self, x: ir.Value) -> ir.Value:
        """The result of heads [n, heads, d], projected."""
        return self.out(reshape(x, [dims_of(x)[0], self.size]))

    def over(self, x: ir.Value, keys: ir.Value, values: ir.Value) -> ir.Value:
        """Attention of [n, size] to all of some keys and values [m, heads, d]."""
        parts = [self.split(self.q(x)), keys, values]
        batch = [graph.ExpandDimsOp.build(part, axes=[0]).result for part in parts]
        mixed = graph.BatchedAttentionOp.build(*batch, scale=self.scale, causal=False).result
        return self.joined(reshape(mixed, dims_of(mixed)[1:]))


class _Network(Module):
    """fc2(gelu(fc1(norm(x))))."""

    def __init__(self, prefix: str, size: int, inner: int, storage: Storage) -> None:
        self.norm = LayerNorm(size, EPSILON, f"{prefix}.final_layer_norm", True)
        self.up = Linear(size, {f"{prefix}.fc1": inner}, storage, True)
        self.down = Linear(inner, {f"{prefix}.fc2": size}, storage, True)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [n, size] to [n, size]."""
        return self.down(graph.GeluOp.build(self.up(self.norm(x))).result)


class _EncoderLayer(Module):
    def __init__(self, prefix: str, config: WhisperConfig, storage: Storage) -> None:
        size = config.size
        self.norm = LayerNorm(size, EPSILON, f"{prefix}.self_attn_layer_norm", True)
        self.own = _Attention(f"{prefix}.self_attn", size, config.encoder_heads, storage)
        self.network = _Network(prefix, size, config.encoder_inner, storage)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [s, size] to [s, size]."""
        normal, own = self.norm(x), self.own
        keys, values = own.split(own.k(normal)), own.split(own.v(normal))
        x = add(x, own.over(normal, keys, values))
        return add(x, self.network(x))


class Encoder(Module):
    """From a spectrogram to what each layer of the decoder reads of it."""

    def __init__(self, config: WhisperConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = config
        size, prefix = config.size, "model.encoder"
        widths = pairwise((config.features.mels, size, size))
        self.filters = [
            Parameter((out, inputs, 3), (f"{prefix}.conv{i}.weight",))
            for i, (inputs, out) in enumerate(widths, 1)
        ]
        self.biases = [Parameter((size,), (f"{prefix}.conv{i}.bias",)) for i in (1, 2)]
        self.positions = Parameter(
            (config.source_positions, size), (f"{prefix}.embed_positions.weight",)
        )
        self.layers = [
            _EncoderLayer(f"{prefix}.layers.{i}", config, storage)
            for i in range(config.encoder_layers)
        ]
        self.norm = LayerNorm(size, EPSILON, f"{prefix}.layer_norm", True)
        self.readers = [
            _Attention(_reader(i), size, config.decoder_heads, storage)
            for i in range(config.decoder_layers)
        ]

    def parameters(self) -> list[Parameter]:  # type: ignore[override]
        """Those that are used: queries and results of readers are the decoder's."""
        unused = {p for r in self.readers for part in (r.q, r.out) for p in part.parameters()}
        return [p for p in dict.fromkeys(super().parameters()) if p not in unused]

    def __call__(self, mel: ir.Value) -> list[ir.Value]:
        """Maps [mels, 2 * s] to keys and values of each layer."""
        x = graph.ExpandDimsOp.build(mel, axes=[0]).result
        for stride, weight, bias in zip((1, 2), self.filters, self.biases):
            x = conv(x, value_of(weight), value_of(bias), strides=[stride], padding=[1, 1])
            x = graph.GeluOp.build(x).result
        x = reshape(permute(x, [0, 2, 1]), [self.config.source_positions, self.config.size])
        x = add(x, value_of(self.positions))
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return [
            reader.split(project(x)) for reader in self.readers for project in (reader.k, reader.v)
        ]


class _DecoderLayer(Module):
    def __init__(self, index: int, config: WhisperConfig, storage: Storage) -> None:
        prefix, size, heads = f"model.decoder.layers.{index}", config.size, config.decoder_heads
        self.norm = LayerNorm(size, EPSILON, f"{prefix}.self_attn_layer_norm", True)
        self.own = _Attention(f"{prefix}.self_attn", size, heads, storage)
        self.reader_norm = LayerNorm(size, EPSILON, f"{prefix}.encoder_attn_layer_norm", True)
        self.reader = _Attention(_reader(index), size, heads, storage)
        self.network = _Network(prefix, size, config.decoder_inner, storage)

    def __call__(self, x: ir.Value, read: Pair, cache: Pair) -> tuple[ir.Value, list[ir.Value]]:
        """Maps [n, size] to [n, size]; also returns the updated cache."""
        normal, own = self.norm(x), self.own
        query, key, value = (own.split(project(normal)) for project in (own.q, own.k, own.v))
        reading = Reading(CACHED, own.scale)
        mixed, updated = attend("f32", False, query, key, value, cache, reading)
        x = add(x, own.joined(mixed))
        x = add(x, self.reader.over(self.reader_norm(x), *read))
        return add(x, self.network(x)), updated


class Decoder(Module):
    """From tokens and what it reads of a window to logits."""

    def __init__(self, config: WhisperConfig, storage: Storage = F32_STORAGE) -> None:
        self.config = config
        size, prefix = config.size, "model.decoder"
        name = f"{prefix}.embed_tokens.weight"
        self.embedding = Embedding(config.vocab_size, size, name, storage)
        self.positions = Weight(
            config.target_positions, size, [f"{prefix}.embed_positions.weight"], F32_STORAGE
        )
        self.layers = [_DecoderLayer(i, config, storage) for i in range(config.decoder_layers)]
        self.norm = LayerNorm(size, EPSILON, f"{prefix}.layer_norm", True)
        self.head = self.embedding.weight
        if not config.ties_head:
            self.head = Weight(config.vocab_size, size, ["proj_out.weight"], storage)

    def parameters(self) -> list[Parameter]:  # type: ignore[override]
        """Those that are used: keys and values of readers are the encoder's."""
        readers = [layer.reader for layer in self.layers]
        unused = {p for r in readers for part in (r.k, r.v) for p in part.parameters()}
        return [p for p in dict.fromkeys(super().parameters()) if p not in unused]

    def __call__(
        self, tokens: ir.Value, read: Sequence[Pair], caches: Sequence[Pair]
    ) -> list[ir.Value]:
        """Maps int32[n] to logits [n, vocab] and the updated caches."""
        factor = self.config.size**0.5 if self.config.scales_embedding else 1.0
        x = scaled(self.embedding(tokens), factor)
        positions = arange(CACHED, f"{CACHED} + {NEW}", ir.IntegerType.get_signless(32))
        x = add(x, self.positions.take(positions))
        updated: list[ir.Value] = []
        for layer, pair, cache in zip(self.layers, read, caches, strict=True):
            x, own = layer(x, pair, cache)
            updated += own
        return [self.head.multiply(Operand(self.norm(x))), *updated]


def _reader(layer: int) -> str:
    return f"model.decoder.layers.{layer}.encoder_attn"


def export_encoder(model: Encoder) -> str:
    """The text of a module with the encoder as `@main`."""
    c = model.config
    dims = [c.source_positions, c.decoder_heads, c.size // c.decoder_heads]

    def build(values: Sequence[ir.Value]) -> list[ir.Value]:
        return model(values[0])

    with make_context(), ir.Location.unknown(), graph.remembering():
        mel = _tensor([c.features.mels, c.features.frames])
        read = [_tensor(dims)] * (2 * c.decoder_layers)
        return _module({"mel": mel}, (), model.parameters(), build, read)


def export_decoder(model: Decoder) -> str:
    """The text of a module with the decoder as `@main`."""
    c = model.config
    width = c.size // c.decoder_heads
    count = 2 * c.decoder_layers

    def build(values: Sequence[ir.Value]) -> list[ir.Value]:
        read, caches = values[2 : 2 + count], values[2 + count : 2 + 2 * count]
        return model(values[0], _pairs(read), _pairs(caches))

    with make_context(), ir.Location.unknown(), graph.remembering():
        i32 = ir.IntegerType.get_signless(32)
        given = {
            "tokens": TensorType.make([NEW], i32).to_mlir(),
            "lengths": shape_value_type([CACHED]),
        }
        cache = _tensor([c.decoder_heads, CAPACITY, width])
        for i in range(c.decoder_layers):
            for part in ("keys", "values"):
                given[f"{part}_{i}"] = _tensor([c.source_positions, c.decoder_heads, width])
        names = [f"{part}_cache_{i}" for i in range(c.decoder_layers) for part in ("key", "value")]
        logits = _tensor([NEW, c.vocab_size])
        given.update(dict.fromkeys(names, cache))
        return _module(given, names, model.parameters(), build, [logits, *[cache] * count])


def _pairs(values: Sequence[ir.Value]) -> list[Pair]:
    return list(zip(values[::2], values[1::2]))


def _tensor(dims: Sequence[int | str]) -> ir.Type:
    return TensorType.make(dims, ir.F32Type.get()).to_mlir()


def _module(
    given: Mapping[str, ir.Type],
    caches: Sequence[str],
    parameters: Sequence[Parameter],
    build: Callable[[Sequence[ir.Value]], list[ir.Value]],
    results: Sequence[ir.Type],
) -> str:
    """A module with one function, which updates its `caches`."""
    module = ir.Module.create()
    kinds = [TensorType.make(p.dims, p.element).to_mlir() for p in parameters]
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", ([*given.values(), *kinds], list(results)))
    i64 = ir.IntegerType.get_signless(64)
    entries = []
    for name in [*given, *(p.name for p in parameters)]:
        entry: dict[str, ir.Attribute] = {"graph.name": ir.StringAttr.get(name)}
        if name in caches:
            entry["graph.inout"] = ir.IntegerAttr.get(i64, 1 + caches.index(name))
        entries.append(ir.DictAttr.get(entry))
    main.arg_attrs = entries
    main.attributes["graph.num_inputs"] = ir.IntegerAttr.get(i64, len(given))
    if caches:
        fact = ir.StringAttr.get(f"{CACHED} + {NEW} <= {CAPACITY}")
        main.attributes["graph.facts"] = ir.ArrayAttr.get([fact])
    arguments = list(main.add_entry_block().arguments)
    values = dict(zip(parameters, arguments[len(given) :], strict=True))
    with ir.InsertionPoint(main.entry_block), Scope(values):
        func.ReturnOp(build(arguments))
    return str(module)
