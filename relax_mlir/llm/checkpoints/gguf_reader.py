"""Weights of a Llama model in a GGUF file.

Files of architecture `llama` have query and key rows in the order of llama.cpp's rotary kernel,
which rotates elements 2i and 2i+1 of a head; `GgufWeights` restores the order of `rotate_half`.
Whole rows are permuted, so quantised matrices stay exact.

Source: GGUF specification, standardised tensor names; llama.cpp `convert_hf_to_gguf.py`.
"""

import mmap
import re

import numpy as np

from relax_mlir.llm.architectures.config import LlamaConfig
from relax_mlir.llm.checkpoints.weights import WeightSource, check_shapes
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.quantization import RawTensor

GLOBAL_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
ROPE_FACTORS = "rope_freqs.weight"  # part of the configuration


class GgufWeights(WeightSource):
    """The weights in `file`; raises ModelError if it has no complete Llama model."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        self.config = LlamaConfig.from_gguf(file)
        self._stored_names = {
            _normalised(name): name for name in file.tensors if name != ROPE_FACTORS
        }
        shapes = {name: file.tensors[stored].shape for name, stored in self._stored_names.items()}
        check_shapes(str(file.path), self.config, shapes)
        for stored in file.tensors:
            file.check_format(stored)

    def raw(self, name: str) -> RawTensor:
        """See `WeightSource.raw`; query and key projections are copies with permuted rows."""
        tensor = self.file.raw(self._stored_names[name])
        if name.endswith("q_proj.weight"):
            return tensor.take_rows(half_split_order(self.config.num_heads, self.config.head_dim))
        if name.endswith("k_proj.weight"):
            return tensor.take_rows(
                half_split_order(self.config.num_kv_heads, self.config.head_dim)
            )
        return tensor

    def format(self, name: str) -> str:
        """See `WeightSource.format`."""
        return self.file.tensors[self._stored_names[name]].format

    def release(self) -> None:
        """See `WeightSource.release`."""
        self.file.buffer.madvise(mmap.MADV_DONTNEED)


def half_split_order(num_heads: int, head_dim: int) -> np.ndarray:
    """The interleaved index of each row in `rotate_half` order.

    int64[num_heads * head_dim]: within a head the even rows, then the odd rows.
    """
    rows = np.arange(num_heads * head_dim).reshape(num_heads, head_dim // 2, 2)
    return rows.transpose(0, 2, 1).reshape(-1)


def _normalised(name: str) -> str:
    """The Hugging Face name of tensor `name`; an unknown name is returned unchanged."""
    stem, dot, kind = name.rpartition(".")
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)", stem)
    if layer and layer[2] in LAYER_NAMES:
        return f"model.layers.{layer[1]}.{LAYER_NAMES[layer[2]]}.{kind}"
    return f"{GLOBAL_NAMES[stem]}{dot}{kind}" if stem in GLOBAL_NAMES else name
