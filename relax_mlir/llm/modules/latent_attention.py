"""Attention to compressed keys and values, which all heads share (DeepSeek-V2, arXiv 2405.04434).

The cache has the latent elements of a token, and its rotated ones: one head of keys, whose first
elements are the values too. Keys and values of heads are never computed: the matrices that would
compute them are multiplied with queries and with results instead.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.attention import CACHED, NEW, Positions
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.modules.kv_cache import Reading, attend
from relax_mlir.llm.modules.nn import (
    Linear,
    Module,
    RmsNorm,
    Storage,
    Weight,
    concat,
    full,
    matmul,
    permute,
    reshape,
    slice_axis,
)


class LatentAttention(Module):
    """Attention of one layer."""

    def __init__(self, config: DecoderConfig, layer: int, prefix: str, storage: Storage) -> None:
        assert config.latent is not None
        self.config, self.storage = config, storage
        self.latent = c = config.latent
        self.rope = config.rope_of(layer)
        hidden, heads = config.hidden_size, config.num_heads
        if c.query_rank:
            down = {f"{prefix}.q_a_proj": c.query_rank}
            self.query_down = Linear(hidden, down, storage, config.qkv_bias)
            name = f"{prefix}.q_a_norm.weight"
            self.query_norm = RmsNorm(c.query_rank, c.norm_eps, name)
        name = f"{prefix}.q_b_proj" if c.query_rank else f"{prefix}.q_proj"
        self.query = Linear(c.query_rank or hidden, {name: config.query_size}, storage)
        self.down = Linear(hidden, {f"{prefix}.kv_a_proj": c.size}, storage, config.qkv_bias)
        self.norm = RmsNorm(c.rank, c.norm_eps, f"{prefix}.kv_a_norm.weight")
        self.keys, self.values = (
            Weight(heads * rows, c.rank, [f"{prefix}.{name}.weight"], storage.for_matrices(rows))
            for name, rows in (("k_b_proj", c.plain), ("v_b_proj", c.value))
        )
        out = {f"{prefix}.o_proj": hidden}
        self.out = Linear(heads * c.value, out, storage, config.out_bias)

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], positions: Positions
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; also returns the updated parts of the cache."""
        c, heads = self.latent, self.config.num_heads
        assert self.rope is not None
        table = positions.tables[self.config.ropes.index(self.rope)]
        how = Reading(CACHED, self.config.score_scale, pages=positions.pages, is_shared=True)
        mixed, cache = attend(
            self.storage.cache,
            self.storage.activations == "int8",
            self._queries(x, table),
            self._keys(x, table),
            full(0.0, [NEW, 1, 0]),
            cache,
            how,
        )
        by_head = permute(slice_axis(mixed, 2, 0, c.rank), [1, 0, 2])
        values = permute(self.values.matrices(heads), [0, 2, 1])
        out = permute(matmul(by_head, values), [1, 0, 2])
        return self.out(reshape(out, [NEW, heads * c.value])), cache

    def _queries(self, x: ir.Value, table: tuple[ir.Value, ir.Value]) -> ir.Value:
        """Queries of latent elements, then of rotated ones: [n, heads, size]."""
        c, heads = self.latent, self.config.num_heads
        if c.query_rank:
            x = self.query_norm(self.query_down(x))
        query = reshape(self.query(x), [NEW, heads, c.plain + c.rope])
        plain = permute(slice_axis(query, 2, 0, c.plain), [1, 0, 2])
        latent = permute(matmul(plain, self.keys.matrices(heads)), [1, 0, 2])
        rotated = slice_axis(query, 2, c.plain, c.plain + c.rope)
        return concat([latent, graph.RotaryOp.build(rotated, *table).result], 2)

    def _keys(self, x: ir.Value, table: tuple[ir.Value, ir.Value]) -> ir.Value:
        """What the cache has of new tokens: [n, 1, size]."""
        c = self.latent
        both = self.down(x)
        latent = reshape(self.norm(slice_axis(both, 1, 0, c.rank)), [NEW, 1, c.rank])
        rotated = reshape(slice_axis(both, 1, c.rank, c.size), [NEW, 1, c.rope])
        return concat([latent, graph.RotaryOp.build(rotated, *table).result], 2)
