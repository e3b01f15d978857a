"""IREE, on the decoder that `llm_iree_build.py` compiles."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import iree.runtime as runtime
import numpy as np
from peers.llm_decoder import Decoder, Program, Replayed
from peers.llm_iree_build import PARTS
from safetensors.numpy import load_file


class Iree(Decoder, Replayed):
    """A module on IREE's local tasks; caches are arrays on its device that grow."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        super().__init__()
        runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
        config = runtime.Config("local-task")
        self._device = config.device
        module = runtime.VmModule.mmap(config.vm_instance, str(work / "iree.vmfb"))
        self._module = runtime.load_vm_module(module, config)
        self._config = json.loads((work / "hf/config.json").read_text())
        self._load(load_file(work / "hf/model.safetensors"))
        half = self._config["head_dim"] // 2
        self._frequencies = np.tile(self._config["rope_theta"] ** (-np.arange(half) / half), 2)
        self._caches: list = []
        self._row = np.empty(0, np.float32)

    def _load(self, arrays: dict[str, np.ndarray]) -> None:
        names = {"input_norm": "input_layernorm", "post_norm": "post_attention_layernorm"}
        names |= {part: f"self_attn.{part}_proj" for part in "qkvo"}
        names |= {part: f"mlp.{part}_proj" for part in ("gate", "up", "down")}
        self._layers = [
            [self._put(arrays[f"model.layers.{i}.{names[part]}.weight"]) for part in PARTS]
            for i in range(self._config["num_hidden_layers"])
        ]
        self._embedding = arrays["model.embed_tokens.weight"]
        self._end = [self._put(arrays["model.norm.weight"]), self._put(self._embedding)]

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`; prompts go into empty caches, all else is a step."""
        begin, count = len(self.tokens), len(tokens)
        if begin and count > 1:
            raise NotImplementedError("prompts after other tokens")
        angles = np.outer(np.arange(begin, begin + count), self._frequencies)[None, None]
        x = self._put(self._embedding[list(tokens)][None])
        common = [self._put(f(angles)) for f in (np.cos, np.sin)]
        if begin:
            pairs = zip(self._caches[::2], self._caches[1::2], strict=True)
            own = [[*pair, *layer] for pair, layer in zip(pairs, self._layers, strict=True)]
            function = self._module.step
        else:
            common.append(self._put(np.triu(np.full((count, count), -np.inf), 1)))
            own = self._layers
            function = self._module.begin
        x, *self._caches = function(x, *common, *(array for arrays in own for array in arrays))
        last = self._put(np.asarray(x)[:, -1:]) if count > 1 else x
        self._row = self._module.end(last, *self._end)
        self.tokens += tokens

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        if length == len(self.tokens):
            return
        if remaining := self.cut(length):
            self.append(remaining)

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return np.asarray(self._row).reshape(-1)

    def _put(self, array: np.ndarray) -> object:
        return runtime.asdevicearray(self._device, np.ascontiguousarray(array, np.float32))


class IreeProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(Iree, version("iree-base-runtime"), threads)
