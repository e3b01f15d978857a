"""StarCoder 2 (arXiv 2402.19173): layer norms, biases, a plain network, grouped queries."""

from typing import Any

from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.architectures.mistral import Mistral
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile

OPTIONS: dict[str, Any] = {"norm": "layer", "norm_bias": True, "gated": False}
BIASES = ("qkv_bias", "out_bias", "mlp_bias")


class StarCoder2(Mistral):
    """All layers have a window, if `sliding_window` is set."""

    hugging_face = ("Starcoder2ForCausalLM", "starcoder2")
    gguf = "starcoder2"
    gguf_of = ""
    norm_key = "norm_epsilon"
    norm_eps = 1e-5
    gguf_norm_key = "attention.layer_norm_epsilon"
    activation = "gelu_pytorch_tanh"
    tied = True
    hf_names = Names(layer={"mlp.up_proj": "mlp.c_fc", "mlp.down_proj": "mlp.c_proj"})

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms, biases, windows."""
        biases = dict.fromkeys(BIASES, fields.flag("use_bias", True))
        return {**super().hf_options(fields), **OPTIONS, **biases}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms and biases."""
        return {**OPTIONS, **dict.fromkeys(BIASES, "blk.0.attn_q.bias" in file.tensors)}
