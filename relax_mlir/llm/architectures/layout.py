"""How the tensors of a file correspond to the weights of a `DecoderConfig`.

A stored tensor has one weight, or several: concatenated, with rows in another order, transposed,
or one matrix per expert.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relax_mlir.llm.modules.config import DecoderConfig


@dataclass(frozen=True, eq=False)
class Stored:
    """The tensor `name` of a file, which has the weights `parts`, concatenated along the rows.

    Row i of the weights is row `order[i]` of the tensor. With `matrices`, it has a leading dim of
    so many, each of equally many rows; `transposed` ones are (in, out). `plus` is added to what is
    stored; of `rates` -exp(x) is stored for x. `dims` is its shape where that is another one than
    follows from its weights.
    """

    name: str
    parts: tuple[str, ...]
    order: np.ndarray | None = None
    transposed: bool = False
    matrices: int = 0
    plus: float = 0.0
    rates: bool = False
    dims: tuple[int, ...] = ()

    def shape(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of the tensor, given those of all weights."""
        if self.dims:
            return self.dims
        rows, (_, *columns) = sum(shapes[part][0] for part in self.parts), shapes[self.parts[0]]
        each = (rows // (self.matrices or 1), *columns)
        each = each[::-1] if self.transposed else each
        return (self.matrices, *each) if self.matrices else each


@dataclass(frozen=True)
class Names:
    """The names of tensors in files of an architecture.

    `outer` and `layer` map names of modules, as `DecoderConfig.weight_shapes` has them, to names
    in the file; those of layers are below `layers` and the index. `fused` maps a name below a
    layer to the modules in it. `biases` and `weights` say how they end.
    """

    layers: str = "model.layers"
    outer: Mapping[str, str] | None = None
    layer: Mapping[str, str] | None = None
    fused: Mapping[str, Sequence[str]] | None = None

    def tensors(self, config: DecoderConfig) -> list[Stored]:
        """The tensors of a file with this configuration, each of one weight or fused."""
        shapes = config.weight_shapes()
        owner = {part: name for name, parts in (self.fused or {}).items() for part in parts}
        groups: dict[str, list[str]] = {}
        for weight in shapes:
            module, _, kind = weight.rpartition(".")
            groups.setdefault(f"{self._stored(module, owner)}.{kind}", []).append(weight)
        return [Stored(name, tuple(parts)) for name, parts in groups.items()]

    def _stored(self, module: str, owner: Mapping[str, str]) -> str:
        if not module.startswith("model.layers."):
            return (self.outer or {}).get(module, module)
        _, _, index, name = module.split(".", 3)
        name = owner.get(name, (self.layer or {}).get(name, name))
        if name.startswith("mlp.experts."):
            expert, _, matrix = name.removeprefix("mlp.experts.").partition(".")
            template = (self.layer or {}).get(f"mlp.experts.{matrix}", f"mlp.experts.E.{matrix}")
            name = template.replace(".E.", f".{expert}.")
        return f"{self.layers}.{index}.{name}"


def half_split_order(num_heads: int, head_dim: int, rotated: int = 0) -> np.ndarray:
    """The interleaved index of each row in `rotate_half` order: int64[num_heads * head_dim].

    Within a head these are the even rows, then the odd rows, of the first `rotated` ones (by
    default all), then the others.
    """
    rows = np.arange(num_heads * head_dim).reshape(num_heads, head_dim)
    rotated = rotated or head_dim
    pairs = rows[:, :rotated].reshape(num_heads, rotated // 2, 2).transpose(0, 2, 1)
    return np.concatenate([pairs.reshape(num_heads, -1), rows[:, rotated:]], axis=1).reshape(-1)


def with_grouped_heads(tensors: Sequence[Stored], config: DecoderConfig) -> list[Stored]:
    """The tensors, of which `query_key_value` has queries, key and value of a group together."""
    order = _grouped_order(config)
    return [replace(t, order=order) if "query_key_value" in t.name else t for t in tensors]


def _grouped_order(config: DecoderConfig) -> np.ndarray:
    """The index of each row of queries, then keys, then values, int64."""
    group = config.num_heads // config.num_kv_heads
    indices = np.arange(config.query_size + 2 * config.kv_size)
    rows = indices.reshape(config.num_kv_heads, group + 2, config.head_dim)
    parts = (rows[:, :group], rows[:, group], rows[:, group + 1])
    return np.concatenate([part.reshape(-1) for part in parts])
