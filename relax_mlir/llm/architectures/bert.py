"""BERT (arXiv 1810.04805) and MiniLM (2002.10957), as encoders."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.modules.encoder_config import EncoderConfig

OPTIONS: dict[str, Any] = {"norm": "layer", "norm_bias": True, "pre_norm": False, "sum_norm": True}


class Bert(Architecture):
    """Learned positions, and norms of sums."""

    hugging_face = ("BertModel", "bert")
    gguf = "bert"
    fixed = (
        ("position_embedding_type", "absolute"),
        ("is_decoder", False),
        ("add_cross_attention", False),
    )
    norm_key = "layer_norm_eps"
    norm_eps = 1e-12
    activation = "gelu"
    unused = ("pooler.dense.weight", "pooler.dense.bias", "embeddings.position_ids")
    hf_names = Names(
        "encoder.layer",
        {
            "model.embed_tokens": "embeddings.word_embeddings",
            "model.embed_positions": "embeddings.position_embeddings",
            "model.embed_types": "embeddings.token_type_embeddings",
            "model.embed_norm": "embeddings.LayerNorm",
        },
        {
            "self_attn.q_proj": "attention.self.query",
            "self_attn.k_proj": "attention.self.key",
            "self_attn.v_proj": "attention.self.value",
            "self_attn.o_proj": "attention.output.dense",
            "self_attn.sum_norm": "attention.output.LayerNorm",
            "mlp.up_proj": "intermediate.dense",
            "mlp.down_proj": "output.dense",
            "mlp.sum_norm": "output.LayerNorm",
        },
    )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms, biases, positions."""
        biases = dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), True)
        positions = fields.integer("max_position_embeddings", 512)
        sizes = {"max_context": positions, "positions": positions}
        return {**OPTIONS, **biases, **sizes, "gated": False}

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[()]:
        """None: positions are learned."""
        return ()

    def from_hugging_face(self, fields: Fields, generation: Fields) -> EncoderConfig:
        """See `Architecture`."""
        config = super().from_hugging_face(fields, generation)
        types = fields.integer("type_vocab_size", 2)
        return EncoderConfig.of(config, types=types, embedding_norm=True)
