"""Every scaling of rotary positions that model files name, as factors of frequencies.

Source: Hugging Face `modeling_rope_utils.py`; llama.cpp `llama_model::load_hparams`, `rope_yarn`.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import Rope, Yarn

MAX_FREQUENCY = 1e6
"""Radians per position: times any position it is finite in float32; those of models are up to 1."""
KINDS = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
GGUF_KINDS = ("none", "linear", "yarn", "longrope")
GGUF_YARN = {
    "rope.scaling.yarn_ext_factor": 1.0,
    "rope.scaling.yarn_attn_factor": 1.0,
    "rope.scaling.yarn_log_multiplier": 0.0,
}
"""Keys of GGUF files, with the value that is supported."""


def check_ropes(ropes: Iterable[Rope], fields: Fields) -> None:
    """Raises ModelError unless the angles of all positions are finite."""
    for rope in ropes:
        for is_long in (False, rope.long_factors is not None):
            with np.errstate(all="ignore"):
                greatest = float(rope.inverse_frequencies(is_long).max())
            if not greatest <= MAX_FREQUENCY:
                raise fields.refuse(
                    f"rotates by {greatest:g} radians per position, by its theta and factors; "
                    f"expects up to {MAX_FREQUENCY:g}"
                )


def scale_rope(rope: Rope, scaling: Fields, fields: Fields, max_context: int) -> Rope:
    """`rope` with the `scaling` of a `config.json`, whose entries are `fields`.

    Dynamic scaling begins after `max_context`, where sequences end. Raises ModelError.
    """
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    half = rope.dims // 2
    if kind in ("default", "dynamic"):
        return rope
    if kind == "linear":
        return replace(rope, factors=(scaling.real("factor"),) * half)
    if kind == "llama3":
        periods = [rope.theta ** (i / half) for i in range(half)]
        return replace(rope, factors=tuple(_llama3_factor(scaling, p) for p in periods))
    if kind == "yarn":
        return _yarn(rope, scaling, max_context)
    if kind in ("longrope", "su"):
        return _longrope(rope, scaling, fields, max_context)
    raise scaling.refuse(f"has rope scaling {quoted(kind)}; supported are {', '.join(KINDS)}")


def _llama3_factor(scaling: Fields, period: float) -> float:
    """The divisor of the frequency with this `period` (positions per radian) in Llama 3.1.

    Wavelengths much shorter than the context of pre-training keep their frequency, long ones are
    divided by `factor`, those between are interpolated. Source: Llama 3.1 model code.
    """
    low, high = scaling.real("low_freq_factor"), scaling.real("high_freq_factor")
    if low >= high:
        raise scaling.refuse(f"'low_freq_factor' is {low}; expects less than {high}")
    turns = scaling.integer("original_max_position_embeddings") / (2 * math.pi * period)
    share = min(max((turns - low) / (high - low), 0.0), 1.0)
    return 1 / (share + (1 - share) / scaling.real("factor"))


def _yarn(rope: Rope, scaling: Fields, max_context: int) -> Rope:
    _check_theta(rope, scaling)
    original = scaling.integer("original_max_position_embeddings", max_context)
    factor = scaling.real("factor", max_context / original)
    fast, slow = scaling.real("beta_fast", 32.0), scaling.real("beta_slow", 1.0)
    truncates = scaling.flag("truncate", True)
    yarn = Yarn(factor, original, fast, slow)
    factors = yarn_factors(rope, yarn, truncates)
    rope = replace(rope, yarn=yarn if truncates else None)
    if scaling.values.get("attention_factor") is not None:
        return replace(rope, factors=factors, scale=scaling.real("attention_factor"))
    scale = yarn_scale(factor)
    if scaling.values.get("mscale") and scaling.values.get("mscale_all_dim"):
        parts = [yarn_scale(factor, scaling.real(key)) for key in ("mscale", "mscale_all_dim")]
        scale = parts[0] / parts[1]
    return replace(rope, factors=factors, scale=scale)


def _check_theta(rope: Rope, fields: Fields) -> None:
    if rope.theta <= 1:
        raise fields.refuse(
            f"has theta {rope.theta:g} and rope scaling 'yarn'; expects more than 1"
        )


def yarn_scale(factor: float, weight: float = 1.0) -> float:
    """The factor of cos and sin."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1


def yarn_factors(rope: Rope, yarn: Yarn, truncates: bool = True) -> tuple[float, ...]:
    """Divisors of frequencies: 1 of fast ones, `yarn.factor` of slow ones.

    Source: YaRN (arXiv 2309.00071).
    """

    def index_of(turns: float) -> float:
        ratio = yarn.original / (turns * 2 * math.pi)
        return rope.dims * math.log(ratio) / (2 * math.log(rope.theta))

    low, high = index_of(yarn.fast), index_of(yarn.slow)
    if truncates:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.dims - 1)
    high = high + 0.001 if low == high else high
    shares = [min(max((i - low) / (high - low), 0.0), 1.0) for i in range(rope.dims // 2)]
    return tuple(1 / (share / yarn.factor + (1 - share)) for share in shares)


def _longrope(rope: Rope, scaling: Fields, fields: Fields, max_context: int) -> Rope:
    key = "original_max_position_embeddings"
    original = scaling.integer(key, fields.integer(key, max_context))
    if original < 2:
        raise scaling.refuse(f"'{key}' is {original}; expects more than 1 with 'longrope'")
    factor = scaling.real("factor", max_context / original)
    scale = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    short, long = (_factor_list(scaling, f"{name}_factor", rope) for name in ("short", "long"))
    return replace(
        rope,
        factors=short,
        long_factors=long,
        original_context=original,
        scale=scaling.real("attention_factor", scale),
    )


def _factor_list(scaling: Fields, key: str, rope: Rope) -> tuple[float, ...]:
    factors = scaling.reals(key)
    if len(factors) != rope.dims // 2:
        raise scaling.refuse(f"'{key}' has {len(factors)} factors; expects {rope.dims // 2}")
    return factors


def scale_gguf_rope(rope: Rope, file: GgufFile, fields: Fields) -> Rope:
    """`rope` with the scaling in the metadata and tensors of a GGUF file; raises ModelError.

    The keys of `fields` have no prefix.
    """
    kind = fields.text("rope.scaling.type", "linear")
    if kind not in GGUF_KINDS:
        known = ", ".join(GGUF_KINDS)
        raise fields.refuse(f"has rope scaling {quoted(kind)}; supported are {known}")
    rope = replace(rope, scale=fields.real("rope.scaling.attn_factor", 1.0))
    long = _stored_factors(rope, file, fields, "rope_factors_long.weight")
    if long is not None:
        return _gguf_longrope(rope, long, file, fields)
    if kind == "longrope":
        raise fields.refuse("has rope scaling 'longrope' without 'rope_factors_long.weight'")
    if kind == "yarn":
        return _gguf_yarn(rope, file, fields)
    factor = _gguf_factor(kind, fields)
    each = _stored_factors(rope, file, fields, "rope_freqs.weight")
    if each is None:
        return rope if factor == 1 else replace(rope, factors=(factor,) * (rope.dims // 2))
    return replace(rope, factors=tuple(factor * x for x in each))


def _gguf_longrope(rope: Rope, long: tuple[float, ...], file: GgufFile, fields: Fields) -> Rope:
    short = _stored_factors(rope, file, fields, "rope_factors_short.weight")
    if short is None:
        raise fields.refuse("has no 'rope_factors_short.weight' for its long factors")
    original = fields.integer("rope.scaling.original_context_length")
    return replace(rope, factors=short, long_factors=long, original_context=original)


def _gguf_yarn(rope: Rope, file: GgufFile, fields: Fields) -> Rope:
    """The frequencies of YaRN: all of it, without weights of its own for the scale of scores."""
    for key, value in GGUF_YARN.items():
        if fields.values.get(key, value) != value:
            raise fields.refuse(
                f"'{fields.prefix}{key}' is {quoted(fields.values[key])}; {value} is supported"
            )
    if "rope_freqs.weight" in file.tensors:
        raise fields.refuse("has 'rope_freqs.weight' and rope scaling 'yarn'; expects one of them")
    _check_theta(rope, fields)
    factor = fields.real("rope.scaling.factor")
    original = fields.integer("rope.scaling.original_context_length")
    fast = fields.real("rope.scaling.yarn_beta_fast", 32.0)
    slow = fields.real("rope.scaling.yarn_beta_slow", 1.0)
    yarn = Yarn(factor, original, fast, slow)
    scale = rope.scale * yarn_scale(factor)
    return replace(rope, factors=yarn_factors(rope, yarn), scale=scale, yarn=yarn)


def _gguf_factor(kind: str, fields: Fields) -> float:
    """The divisor of all frequencies."""
    key = "rope.scaling.factor"
    if fields.values.get(key) is None:
        key = "rope.scale_linear"  # its name in older files
    if kind == "none" or fields.values.get(key) == 0:
        return 1.0
    return fields.real(key, 1.0)


def _stored_factors(
    rope: Rope, file: GgufFile, fields: Fields, name: str
) -> tuple[float, ...] | None:
    if name not in file.tensors:
        return None
    # Checks the shape first: decoding allocates as many elements as the file claims.
    half = rope.dims // 2
    fits = file.tensors[name].shape == (half,)
    factors = file.raw(name).to_f32() if fits else None
    if factors is None or not (factors > 0).all():
        raise fields.refuse(f"'{name}' holds no {half} positive values")
    return tuple(float(x) for x in factors)
