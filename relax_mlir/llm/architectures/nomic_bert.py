"""Nomic Embed (arXiv 2402.01613): BERT with rotary positions and gated networks."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.bert import OPTIONS
from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.encoder_config import EncoderConfig

KEYS = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_layer": "num_hidden_layers",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
    "rotary_emb_fraction": "partial_rotary_factor",
}
"""Names of entries in the files of its authors, and of `transformers`."""


class NomicBert(Architecture):
    """Products have no biases, and positions no parameters."""

    hugging_face = ("NomicBertModel", "nomic_bert")
    gguf = "nomic-bert"
    fixed = (
        *(("causal", False), ("prenorm", False), ("use_rms_norm", False)),
        *(("parallel_block", False), ("rotary_emb_interleaved", False)),
        *(("rotary_scaling_factor", None), ("rotary_emb_scale_base", None)),
        *(("qkv_proj_bias", False), ("mlp_fc1_bias", False), ("mlp_fc2_bias", False)),
        ("activation_function", "swiglu"),
    )
    norm_key = "layer_norm_eps"
    norm_eps = 1e-12
    theta = 1000.0
    unused = ("rotary_emb.inv_freq", "pooler.dense.weight", "pooler.dense.bias")
    hf_names = Names(
        "encoder.layers",
        {
            "model.embed_tokens": "embeddings.word_embeddings",
            "model.embed_types": "embeddings.token_type_embeddings",
            "model.embed_norm": "emb_ln",
        },
        {
            "self_attn.o_proj": "attn.out_proj",
            "self_attn.sum_norm": "norm1",
            "mlp.up_proj": "mlp.fc11",
            "mlp.gate_proj": "mlp.fc12",
            "mlp.down_proj": "mlp.fc2",
            "mlp.sum_norm": "norm2",
        },
        {"attn.Wqkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")},
    )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms."""
        return dict(OPTIONS)

    def from_hugging_face(self, fields: Fields, generation: Fields) -> EncoderConfig:
        """See `Architecture`."""
        config = super().from_hugging_face(fields.renamed(KEYS), generation)
        types = fields.integer("type_vocab_size", 2)
        return EncoderConfig.of(config, types=types, embedding_norm=True)
