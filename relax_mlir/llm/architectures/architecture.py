"""The base of architectures: what most files of models state alike.

A subclass names itself in both kinds of files, reads the entries that only it has, and maps names
of tensors. `hugging_face` and `gguf` are public entry points.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, ClassVar

from relax_mlir.llm.architectures.layout import Names, Stored, half_split_order
from relax_mlir.llm.architectures.rope_scaling import check_ropes, scale_gguf_rope, scale_rope
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.packed_weights import packing_of
from relax_mlir.llm.modules.config import (
    MAX_EXPERTS,
    MAX_HEAD_DIM,
    MAX_LAYERS,
    MAX_ROWS,
    DecoderConfig,
    Rope,
)

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""Activations of `config.json`."""

GGUF_OUTER = {
    "model.embed_tokens": "token_embd",
    "model.embed_positions": "position_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
GGUF_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.post_norm": "post_attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.post_norm": "post_ffw_norm",
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.gate_proj": "ffn_gate_exps",
    "mlp.experts.up_proj": "ffn_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
FUSED_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
GGUF_NAMES = Names("blk", GGUF_OUTER, GGUF_LAYER)
"""The names of GGUF files. Source: GGUF specification, standardised tensor names."""


class Architecture:
    """A decoder in files of both kinds; a subclass overrides what differs from Llama."""

    hugging_face: ClassVar[tuple[str, ...]]
    """Names in `architectures` of `config.json`, then in `model_type`."""
    gguf: ClassVar[str]
    """The value of `general.architecture`, and the prefix of keys."""
    gguf_of: ClassVar[str] = ""
    """The architecture that GGUF files have instead."""
    states_windows: ClassVar[bool] = False
    """Whether GGUF files state windows."""
    fixed: ClassVar[tuple[tuple[str, Any], ...]] = ()
    """Entries of `config.json` that change the model, with the value that is supported."""
    norm_key: ClassVar[str] = "rms_norm_eps"
    norm_eps: ClassVar[float] = 1e-6
    """Of `config.json` without one."""
    gguf_norm_key: ClassVar[str] = "attention.layer_norm_rms_epsilon"
    activation_key: ClassVar[str] = "hidden_act"
    activation: ClassVar[str] = "silu"
    tied: ClassVar[bool] = False
    """Whether embeddings are shared unless `config.json` says otherwise."""
    rotary: ClassVar[float] = 1.0
    """The share of a head that is rotated unless the files say otherwise."""
    theta: ClassVar[float] = 10000.0
    norm_plus: ClassVar[float] = 0.0
    """What is added to the weights of norms in Hugging Face's files."""
    gguf_interleaved: ClassVar[bool] = False
    """Whether GGUF files have pairs 2i and 2i+1 that rotate together."""
    hf_interleaved: ClassVar[bool] = False
    hf_names: ClassVar[Names] = Names()
    gguf_names: ClassVar[Names] = GGUF_NAMES
    unused: ClassVar[tuple[str, ...]] = ("rotary_emb.inv_freq",)
    """Ends of names of tensors that nothing reads."""

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Options of `DecoderConfig` from `config.json`."""
        return {}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Options of `DecoderConfig` from metadata, whose keys have no prefix here."""
        return {}

    def finish(self, config: DecoderConfig, fields: Fields) -> DecoderConfig:
        """What follows from the configuration, however it was stored."""
        return config

    # Hugging Face.

    def sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes in `config.json`."""
        num_heads = fields.integer("num_attention_heads")
        hidden = fields.integer("hidden_size")
        return {
            "vocab_size": fields.integer("vocab_size"),
            "hidden_size": hidden,
            "intermediate_size": fields.integer("intermediate_size"),
            "num_layers": fields.integer("num_hidden_layers"),
            "num_heads": num_heads,
            "num_kv_heads": fields.integer("num_key_value_heads", num_heads),
            "head_dim": fields.integer("head_dim", hidden // num_heads),
            "max_context": fields.integer("max_position_embeddings", 2048),
        }

    def from_hugging_face(self, fields: Fields, generation: Fields) -> DecoderConfig:
        """Reads `config.json` and `generation_config.json`; raises ModelError."""
        packing_of(fields)
        for key, allowed in (("is_causal", True), *self.fixed):
            value = fields.values.get(key)
            if value is not None and value != allowed:
                raise fields.refuse(f"'{key}' is {quoted(value)}; {allowed!r} is supported")
        end_tokens = fields.ids("eos_token_id") + generation.ids("eos_token_id")
        config = DecoderConfig(
            architecture=self.gguf,
            **{
                **_of_few_layers(self.sizes(fields), fields),
                "norm_eps": fields.real(self.norm_key, self.norm_eps),
                "tie_embeddings": fields.flag("tie_word_embeddings", self.tied),
                "bos_id": fields.id("bos_token_id"),
                "eos_ids": frozenset(end_tokens),
                "activation": self.activation_of(fields),
                **self.hf_options(fields),
            },
        )
        check(config, fields)
        ropes = self.hf_ropes(config, fields)
        check_ropes(ropes, fields)
        return self.finish(replace(config, ropes=ropes), fields)

    def activation_of(self, fields: Fields) -> str:
        """The activation of networks, by our name."""
        name = fields.text(self.activation_key, self.activation)
        if name not in ACTIVATIONS:
            known = ", ".join(map(repr, ACTIVATIONS))
            raise fields.refuse(f"'{self.activation_key}' is {quoted(name)}; supported are {known}")
        return ACTIVATIONS[name]

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[Rope, ...]:
        """The kinds of rotary positions in `config.json`."""
        rope, scaling = fields.table("rope_parameters"), fields.table("rope_scaling")
        share = fields.real("partial_rotary_factor", rope.real("partial_rotary_factor", 1e9))
        dims = rotated_dims(config, self.rotary if share == 1e9 else share, fields)
        theta = fields.real("rope_theta", rope.real("rope_theta", self.theta))
        plain = Rope(theta, dims)
        scaling = scaling if scaling.values else rope
        return (scale_rope(plain, scaling, fields, config.max_context),)

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """The tensors of a Hugging Face folder."""
        tensors = self.hf_names.tensors(config)
        if self.norm_plus:
            tensors = [
                replace(t, plus=self.norm_plus) if "norm" in t.parts[0] else t for t in tensors
            ]
        return _half_split(tensors, config) if self.hf_interleaved else tensors

    def is_unused(self, name: str, config: DecoderConfig) -> bool:
        """Whether nothing reads the tensor `name` of a Hugging Face folder."""
        return name.endswith(self.unused)

    # GGUF.

    def from_gguf(self, file: GgufFile, fields: Fields) -> DecoderConfig:
        """Reads the metadata of a file; `fields` are all of them. Raises ModelError."""
        own = fields.below(self.gguf)
        if own.values.get("attention.causal", True) is not True:
            value = quoted(own.values["attention.causal"])
            raise fields.refuse(f"'{self.gguf}.attention.causal' is {value}; True is supported")
        config = DecoderConfig(
            architecture=self.gguf,
            **{
                "vocab_size": file.tensors["token_embd.weight"].shape[0],
                **_of_few_layers(self.gguf_sizes(own), fields),
                "norm_eps": own.real(self.gguf_norm_key),
                "tie_embeddings": "output.weight" not in file.tensors,
                "bos_id": fields.id("tokenizer.ggml.bos_token_id"),
                "activation": ACTIVATIONS[self.activation],
                **self.gguf_options(file, own),
            },
        )
        check(config, fields)
        ropes = self.gguf_ropes(config, file, own)
        check_ropes(ropes, own)
        return self.finish(replace(config, ropes=ropes), own)

    def gguf_sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes in metadata, but that of the vocabulary."""
        num_heads = fields.integer("attention.head_count")
        hidden = fields.integer("embedding_length")
        head_dim = fields.integer("attention.key_length", hidden // num_heads)
        if fields.integer("attention.value_length", head_dim) != head_dim:
            value = fields.values["attention.value_length"]
            raise fields.refuse(f"'attention.value_length' is {value}; expects {head_dim}")
        return {
            "hidden_size": hidden,
            "intermediate_size": fields.integer("feed_forward_length"),
            "num_layers": fields.integer("block_count"),
            "num_heads": num_heads,
            "num_kv_heads": fields.integer("attention.head_count_kv", num_heads),
            "head_dim": head_dim,
            "max_context": fields.integer("context_length"),
        }

    def gguf_ropes(self, config: DecoderConfig, file: GgufFile, fields: Fields) -> tuple[Rope, ...]:
        """The kinds of rotary positions in metadata."""
        dims = fields.integer("rope.dimension_count", config.head_dim)
        if dims % 2 or dims > config.head_dim:
            raise fields.refuse(
                f"'rope.dimension_count' is {dims}; expects an even number up to {config.head_dim}"
            )
        plain = Rope(fields.real("rope.freq_base", 10000.0), dims)
        return (scale_gguf_rope(plain, file, fields),)

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """Keys of a GGUF file that only this architecture has: what `gguf_options` reads."""
        return {}

    def gguf_tensors(self, config: DecoderConfig, stored: Collection[str] = ()) -> list[Stored]:
        """The tensors of a GGUF file; of names that are `stored`, where files may differ."""
        tensors = self.gguf_names_of(config, stored).tensors(config)
        tensors = [
            replace(t, matrices=len(t.parts)) if t.name.endswith("_exps.weight") else t
            for t in tensors
        ]
        return _half_split(tensors, config) if self.gguf_interleaved else tensors

    def gguf_names_of(self, config: DecoderConfig, stored: Collection[str]) -> Names:
        """The names of tensors of a GGUF file; of these, if they are `stored`."""
        names = self.gguf_names
        if "blk.0.attn_q.weight" not in stored or not names.fused:
            return names
        fused = {name: parts for name, parts in names.fused.items() if name != "attn_qkv"}
        return replace(names, fused=fused)


def rotated_dims(config: DecoderConfig, share: float, fields: Fields) -> int:
    """The elements of a head that rotate: `share` of them."""
    dims = int(config.head_dim * share)
    if not 0 < dims <= config.head_dim or dims % 2:
        raise fields.refuse(
            f"rotates {dims} of {config.head_dim} elements of a head; expects an even number"
        )
    return dims


def _half_split(tensors: list[Stored], config: DecoderConfig) -> list[Stored]:
    """Restores the order of `rotate_half` in query and key rows, which rotate 2i with 2i+1."""
    heads = {"self_attn.q_proj": config.num_heads, "self_attn.k_proj": config.num_kv_heads}
    dims = config.ropes[0].dims if config.ropes else 0
    return [
        replace(t, order=half_split_order(count, config.head_dim, dims))
        if (count := next((n for key, n in heads.items() if key in t.parts[0]), 0))
        else t
        for t in tensors
    ]


def _of_few_layers(sizes: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """The sizes; other options are lists of so many elements. Raises ModelError."""
    if sizes["num_layers"] > MAX_LAYERS:
        raise fields.refuse(f"has {sizes['num_layers']} layers; expects at most {MAX_LAYERS}")
    return sizes


def check(config: DecoderConfig, fields: Fields) -> None:
    """Raises ModelError for sizes that do not fit, or are absurd."""
    if config.num_heads % config.num_kv_heads:
        raise fields.refuse(
            f"has {config.num_heads} heads and {config.num_kv_heads} key-value heads; "
            f"expects a multiple"
        )
    if config.head_dim % 2 or config.head_dim > MAX_HEAD_DIM:
        raise fields.refuse(
            f"has heads of {config.head_dim} elements; expects an even number up to {MAX_HEAD_DIM}"
        )
    latent = config.latent
    rows = [config.query_size, config.kv_size]
    if latent is not None:
        rows += [latent.size, latent.query_rank, config.num_heads * (latent.plain + latent.value)]
    if max(rows) > MAX_ROWS:
        raise fields.refuse(
            f"has matrices of {max(rows)} rows in attention; expects at most {MAX_ROWS}"
        )
    experts = config.experts
    if experts is not None and not experts.chosen <= experts.count <= MAX_EXPERTS:
        raise fields.refuse(
            f"chooses {experts.chosen} of {experts.count} experts; expects at most all of "
            f"{MAX_EXPERTS}"
        )
