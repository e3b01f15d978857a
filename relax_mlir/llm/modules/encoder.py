"""An encoder as a graph: one function for all counts and lengths of sequences.

    @main(tokens: int32[n], positions: int32[n], rows: int32[b, m], slots: int32[n],
          lengths: int32[b], weights...) -> vectors: float32[b, size]

n tokens of b sequences follow one another; `rows` has the token at each slot of the sequences,
any one after their ends, and `slots` the slot of each token, of b * m. Products are of tokens
alone, attention is of slots.

Source: BERT (arXiv 1810.04805), as Hugging Face computes it; of pooling Sentence-BERT (1908.10084).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType
from relax_mlir.llm.modules.attention import NEW, Attention, Positions
from relax_mlir.llm.modules.decoder import Layer, norm_of
from relax_mlir.llm.modules.encoder_config import Dense, EncoderConfig
from relax_mlir.llm.modules.kv_cache import Pages
from relax_mlir.llm.modules.nn import (
    Block,
    Embedding,
    Linear,
    Module,
    Parameter,
    Scope,
    Storage,
    Weight,
    add,
    arange,
    constant,
    multiply,
    reshape,
    scaled,
    slice_axis,
    value_of,
)
from relax_mlir.llm.modules.rotary import rotation

BATCH, LONGEST = "b", "m"
"""Symbols: sequences, slots of each."""
SMALLEST_NORM = 1e-12
"""The least divisor of a vector that is made of length 1."""


@dataclass(frozen=True)
class Slots(Positions):
    """What layers share: masks are added to scores, by window; see `main` for the others."""

    rows: ir.Value | None = None
    slots: ir.Value | None = None


class FullAttention(Attention):
    """Attention of each token to all of its sequence, or to those within a window."""

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], positions: Positions
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; there is no cache."""
        assert isinstance(positions, Slots)
        c = self.config
        query, key, value = self._heads(self.qkv(x))
        if self.rope is not None:
            table = positions.tables[c.ropes.index(self.rope)]
            query, key = (self._rotated(heads, table) for heads in (query, key))
        heads = [_take(part, positions.rows) for part in (query, key, value)]
        mixed = graph.BatchedAttentionOp.build(
            *heads, positions.masks[self.window], scale=c.score_scale, causal=False
        ).result
        flat = reshape(mixed, [f"{BATCH} * {LONGEST}", c.query_size])
        return self.out(_take(flat, positions.slots)), cache


class Encoder(Module):
    """A whole encoder, from token ids to vectors; `storage` has the formats of matrices."""

    def __init__(self, config: EncoderConfig, storage: Storage) -> None:
        self.config = config
        size = config.hidden_size
        self.embedding = Embedding(config.vocab_size, size, "model.embed_tokens.weight", storage)
        if config.positions:
            name = "model.embed_positions.weight"
            self.positions = Weight(config.positions, size, [name], storage)
        if config.types:
            self.types = Parameter((config.types, size), ("model.embed_types.weight",))
        if config.embedding_norm:
            self.embedding_norm = norm_of(config, "model.embed_norm")
        self.layers = [Layer(config, i, storage, FullAttention) for i in range(config.num_layers)]
        if config.final_norm:
            self.norm = norm_of(config, "model.norm")
        self.dense = [_DenseLayer(d, f"dense.{i}", storage) for i, d in enumerate(config.dense)]

    def __call__(
        self,
        tokens: ir.Value,
        positions: ir.Value,
        rows: ir.Value,
        slots: ir.Value,
        lengths: ir.Value,
    ) -> ir.Value:
        """See `main` above."""
        c = self.config
        x = self._embedded(tokens, positions)
        valid = _valid(lengths)
        masks = {w: _mask(valid, w) for w in {c.window_of(i) for i in range(c.num_layers)}}
        pages = Pages(rows, slots, positions, lengths)  # of which rotation reads positions
        tables = [rotation(rope, pages) for rope in c.ropes]
        shared = Slots(tables, masks, rows=rows, slots=slots)
        for layer in self.layers:
            x, _ = layer(x, (), shared)
        if c.final_norm:
            x = self.norm(x)
        vectors = pooled(c.pooling, x, rows, lengths, valid)
        for dense in self.dense:
            vectors = dense(vectors)
        return _of_length_one(vectors) if c.is_unit else vectors

    def _embedded(self, tokens: ir.Value, positions: ir.Value) -> ir.Value:
        c = self.config
        x = scaled(self.embedding(tokens), c.embedding_scale)
        if c.positions:
            x = add(x, self.positions.take(positions))
        if c.types:
            x = add(x, slice_axis(value_of(self.types), 0, 0, 1))
        return self.embedding_norm(x) if c.embedding_norm else x


class _DenseLayer(Block):
    def __init__(self, dense: Dense, source: str, storage: Storage) -> None:
        self.product = Linear(dense.inputs, {source: dense.outputs}, storage, dense.bias)
        self.activation = dense.activation

    def __call__(self, x: ir.Value) -> ir.Value:
        out = self.product(x)
        return graph.TanhOp.build(out).result if self.activation == "tanh" else out


def pooled(kind: str, x: ir.Value, rows: ir.Value, lengths: ir.Value, valid: ir.Value) -> ir.Value:
    """The vector of each sequence, [b, hidden], of those of its tokens [n, hidden]."""
    first = reshape(slice_axis(rows, 1, 0, 1), [BATCH])
    if kind == "cls":
        return _take(x, first)
    if kind == "lasttoken":
        one = graph.AstypeOp.build(constant(1.0), dtype=ir.IntegerType.get_signless(32)).result
        return _take(x, graph.SubtractOp.build(add(first, lengths), one).result)
    column = graph.ExpandDimsOp.build(valid, axes=[2]).result
    missing = constant(-math.inf if kind == "max" else 0.0)
    each = graph.WhereOp.build(column, _take(x, rows), missing).result
    if kind == "max":
        return graph.MaxOp.build(each, axes=[1], keepdims=False).result
    counts = graph.AstypeOp.build(lengths, dtype=ir.F32Type.get()).result
    total = graph.SumOp.build(each, axes=[1], keepdims=False).result
    return graph.DivideOp.build(total, graph.ExpandDimsOp.build(counts, axes=[1]).result).result


def _take(x: ir.Value, indices: ir.Value | None) -> ir.Value:
    assert indices is not None
    return graph.TakeOp.build(x, indices, axis=0).result


def _valid(lengths: ir.Value) -> ir.Value:
    """Whether there is a token at each slot: boolean [b, m]."""
    keys = arange("0", LONGEST, ir.IntegerType.get_signless(32))
    ends = graph.ExpandDimsOp.build(lengths, axes=[1]).result
    return graph.LessOp.build(keys, ends).result


def _mask(valid: ir.Value, window: int) -> ir.Value:
    """What is added to scores: 0 for a key that is seen, [b, 1, 1, m], or [b, 1, m, m]."""
    seen = graph.ExpandDimsOp.build(valid, axes=[1, 2]).result
    if window:
        i32 = ir.IntegerType.get_signless(32)
        keys = arange("0", LONGEST, i32)
        for less, start in ((True, window), (False, -window)):
            bound = arange(str(start), f"{LONGEST} + {start}", i32)
            bound = graph.ExpandDimsOp.build(bound, axes=[1]).result
            op = graph.LessOp if less else graph.GreaterOp
            seen = graph.LogicalAndOp.build(seen, op.build(keys, bound).result).result
    return graph.WhereOp.build(seen, constant(0.0), constant(-math.inf)).result


def _of_length_one(x: ir.Value) -> ir.Value:
    squares = graph.SumOp.build(multiply(x, x), axes=[1], keepdims=True).result
    norm = graph.SqrtOp.build(squares).result
    return graph.DivideOp.build(
        x, graph.MaximumOp.build(norm, constant(SMALLEST_NORM)).result
    ).result


def export_encoder(model: Encoder) -> str:
    """Writes the model as the text of a module with the one function `@main`."""
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        _export_main(model, module)
        return str(module)


INPUTS = ("tokens", "positions", "rows", "slots", "lengths")


def _export_main(model: Encoder, module: ir.Module) -> None:
    parameters = list(dict.fromkeys(model.parameters()))
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    dims = ([NEW], [NEW], [BATCH, LONGEST], [NEW], [BATCH])
    inputs = [TensorType.make(each, i32).to_mlir() for each in dims]
    inputs += [TensorType.make(p.dims, p.element).to_mlir() for p in parameters]
    result = TensorType.make([BATCH, model.config.size], f32).to_mlir()
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", (inputs, [result]))
    names = [*INPUTS, *(p.name for p in parameters)]
    main.arg_attrs = [ir.DictAttr.get({"graph.name": ir.StringAttr.get(name)}) for name in names]
    i64 = ir.IntegerType.get_signless(64)
    main.attributes["graph.num_inputs"] = ir.IntegerAttr.get(i64, len(INPUTS))
    arguments = list(main.add_entry_block().arguments)
    values = dict(zip(parameters, arguments[len(INPUTS) :]))
    with ir.InsertionPoint(main.entry_block), Scope(values):
        func.ReturnOp([model(*arguments[: len(INPUTS)])])
