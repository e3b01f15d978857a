"""Attention of grouped queries over caches, with every option of `DecoderConfig`."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.modules.kv_cache import Pages, Reading, attend
from relax_mlir.llm.modules.nn import (
    Linear,
    Module,
    RmsNorm,
    Storage,
    concat,
    dims_of,
    reshape,
    slice_axis,
)

NEW, CACHED = "n", "m"
"""Symbols: new tokens, cached tokens."""


@dataclass(frozen=True)
class Positions:
    """What layers share: cos and sin of rotary positions by kind, and masks by window.

    A table is [n, dims / 2]; a mask is boolean [1, n, m + n], where a key is visible. Tokens of
    many sequences have `pages` instead of masks.
    """

    tables: Sequence[tuple[ir.Value, ir.Value]]
    masks: dict[int, ir.Value]
    pages: Pages | None = None


class Attention(Module):
    """Grouped-query attention of one layer."""

    def __init__(self, config: DecoderConfig, layer: int, prefix: str, storage: Storage) -> None:
        self.config = config
        self.storage = storage
        self.rope = config.rope_of(layer)
        self.window = config.window_of(layer)
        heads = {"q": config.num_heads, "k": config.num_kv_heads, "v": config.num_kv_heads}
        projections = {
            f"{prefix}.{name}_proj": count * config.head_dim for name, count in heads.items()
        }
        self.qkv = Linear(config.hidden_size, projections, storage, config.qkv_bias)
        if config.qk_norm:
            sizes = [config.query_size, config.kv_size]
            if config.qk_norm == "head":
                sizes = [config.head_dim] * 2
            self.q_norm = RmsNorm(sizes[0], config.norm_eps, f"{prefix}.q_norm.weight")
            self.k_norm = RmsNorm(sizes[1], config.norm_eps, f"{prefix}.k_norm.weight")
        out = {f"{prefix}.o_proj": config.hidden_size}
        self.out = Linear(config.query_size, out, storage, config.out_bias)

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], positions: Positions
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; also returns the updated parts of the cache."""
        c = self.config
        query, key, value = self._heads(self.qkv(x))
        if self.rope is not None:
            table = positions.tables[c.ropes.index(self.rope)]
            query, key = (self._rotated(heads, table) for heads in (query, key))
        reading = Reading(
            CACHED,
            c.score_scale,
            c.attention_cap,
            self._mask(positions),
            self.window,
            positions.pages,
        )
        rounds = self.storage.activations == "int8"
        mixed, cache = attend(self.storage.cache, rounds, query, key, value, cache, reading)
        return self.out(reshape(mixed, [NEW, c.query_size])), cache

    def _mask(self, positions: Positions) -> ir.Value | None:
        is_plain = not self.window and not self.config.attention_cap
        has_none = is_plain or positions.pages is not None
        return None if has_none else positions.masks[self.window]

    def _heads(self, qkv: ir.Value) -> list[ir.Value]:
        """Splits [n, all] to query, key and value [n, heads, d], the first two normalised."""
        c = self.config
        heads, begin = [], 0
        norms = [self.q_norm, self.k_norm, None] if c.qk_norm else [None] * 3
        for count, norm in zip((c.num_heads, c.num_kv_heads, c.num_kv_heads), norms):
            end = begin + count * c.head_dim
            part = slice_axis(qkv, 1, begin, end)
            if norm is not None and c.qk_norm == "full":
                part = norm(part)
            part = reshape(part, [NEW, count, c.head_dim])
            heads.append(norm(part) if norm is not None and c.qk_norm == "head" else part)
            begin = end
        return heads

    def _rotated(self, heads: ir.Value, table: tuple[ir.Value, ir.Value]) -> ir.Value:
        """Rotates the first elements of each head."""
        size, dims = self.config.head_dim, self.rope.dims if self.rope else 0
        if dims == size:
            return graph.RotaryOp.build(heads, *table).result
        first = graph.RotaryOp.build(slice_axis(heads, 2, 0, dims), *table).result
        return concat([first, slice_axis(heads, 2, dims, size)], len(dims_of(heads)) - 1)
