"""PyTorch: Hugging Face's model in eager mode, and the plain decoder with compiled layers."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peers.llm_decoder import CAPACITY, Decoder, Program
from peers.llm_plain import empty_caches, load_plain
from torch import Tensor

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Eager(Decoder):
    """`LlamaForCausalLM` of transformers with a dynamic cache."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        # transformers looks for a package that is called as one of the benchmarks is.
        sys.path[:] = [folder for folder in sys.path if Path(folder).name != "benchmarks"]
        from transformers import DynamicCache, LlamaForCausalLM

        torch.set_num_threads(threads)
        self._model = LlamaForCausalLM.from_pretrained(work / "hf", dtype=TYPES[weights]).eval()
        self._cache = DynamicCache(config=self._model.config)
        self._row = torch.empty(0)

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        ids = torch.tensor([tokens])
        self._row = self._model(ids, past_key_values=self._cache, logits_to_keep=1).logits

    @torch.inference_mode()
    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        if surplus := self._cache.get_seq_length() - length:
            self._cache.crop(-surplus)

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._row.reshape(-1).float().numpy()


class Compiled(Decoder):
    """The plain decoder with caches of a fixed size; its layers share one compiled region."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        torch.set_num_threads(threads)
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(work / "inductor"))
        self._model = load_plain(work / "hf").to(TYPES[weights])
        self._model.frequencies = self._model.frequencies.float()
        caches = [cache.to(TYPES[weights]) for cache in empty_caches(self._model, CAPACITY)]
        self._pairs = list(zip(caches[::2], caches[1::2], strict=True))
        self._layer = torch.compile(_layer, dynamic=False)
        self._columns = torch.arange(CAPACITY)
        self._length = 0
        self._row = torch.empty(0)

    @torch.inference_mode()
    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        model = self._model
        positions = self._columns[self._length : self._length + len(tokens)]
        x, cos, sin = model.begin(torch.tensor([tokens]), positions)
        hidden = self._columns > positions[:, None]
        mask = torch.zeros((), dtype=x.dtype).masked_fill(hidden, -torch.inf)[None, None]
        # A prompt into empty caches need not attend to the rest of them.
        seen = len(tokens) if self._length == 0 else CAPACITY
        for layer, (k, v) in zip(model.layers, self._pairs, strict=True):
            x = self._layer(layer, x, cos, sin, mask[..., :seen], positions, k, v)
        self._row = model.end(x)
        self._length += len(tokens)

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        self._length = length

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._row.reshape(-1).float().numpy()


def _layer(
    layer: Any,
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    mask: Tensor,
    at: Tensor,
    k: Tensor,
    v: Tensor,
) -> Tensor:
    """One layer; new keys and values go to `at` in the caches, read up to the mask's end."""
    q, new_k, new_v = layer.project(x, cos, sin)
    k.index_copy_(2, at, new_k)
    v.index_copy_(2, at, new_v)
    seen = mask.shape[-1]
    return layer.finish(x, q, k[:, :, :seen], v[:, :, :seen], mask)


class EagerProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(Eager, torch.__version__, threads)


class CompiledProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(Compiled, torch.__version__, threads)
