"""TVM Relax, on the decoders that `llm_tvm_build.py` compiles."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tvm
from peers.llm_decoder import Decoder, Program
from safetensors.numpy import load_file
from tvm import relax


class Library:
    """A built library on the virtual machine, with its weights."""

    def __init__(self, work: Path, schedules: str, arrays: dict[str, np.ndarray]) -> None:
        library = tvm.runtime.load_module(str(work / f"tvm-{schedules}.so"))
        self._machine = relax.VirtualMachine(library, tvm.cpu())
        names = json.loads((work / f"tvm-{schedules}.json").read_text())
        self._weights = [_put(arrays[name]) for name in names]

    def run(self, function: str, *arguments: object) -> tuple:
        """Logits of the last token, and the caches."""
        return self._machine[function](*arguments, *self._weights)


class Tvm(Decoder):
    """Caches are arrays that grow."""

    schedules = "default"

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        os.environ["TVM_NUM_THREADS"] = str(threads)
        config, arrays = _model(work)
        self._prompts, self._steps = self._load(work, arrays)
        half = config["head_dim"] // 2
        self._frequencies = np.tile(config["rope_theta"] ** (-np.arange(half) / half), 2)
        empty = np.zeros((config["num_key_value_heads"], 0, config["head_dim"]), np.float32)
        self._caches_at = {0: [_put(empty)] * (2 * config["num_hidden_layers"])}
        self._length = 0
        self._row = _put(np.empty(0, np.float32))

    def _load(self, work: Path, arrays: dict[str, np.ndarray]) -> tuple[Library, Library]:
        """What runs prompts, and what runs steps."""
        library = Library(work, self.schedules, arrays)
        return library, library

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        begin, count = self._length, len(tokens)
        angles = np.outer(np.arange(begin, begin + count), self._frequencies)
        cos, sin = (_put(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        arguments = (_put(np.array(tokens, np.int32)), cos, sin, self._caches_at[begin])
        if count == 1:
            self._row, caches = self._steps.run("step", *arguments)
        else:
            self._row, caches = self._prompts.run("begin", *arguments)
        self._length += count
        self._caches_at[self._length] = list(caches)

    def truncate(self, length: int) -> None:
        """See `Decoder`; caches of every length are still there."""
        self._length = length
        self._caches_at = {
            at: caches for at, caches in self._caches_at.items() if at in (0, length)
        }

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._row.numpy().reshape(-1)


class Dlight(Tvm):
    """With dlight's rules for CPUs."""

    schedules = "dlight"


class Tuned(Tvm):
    """With MetaSchedule's schedules of steps, on transposed weights; prompts are dlight's."""

    def _load(self, work: Path, arrays: dict[str, np.ndarray]) -> tuple[Library, Library]:
        """See `Tvm`."""
        products = ("_proj.weight", "lm_head.weight")
        transposed = {k: array.T if k.endswith(products) else array for k, array in arrays.items()}
        return Library(work, "dlight", arrays), Library(work, "metaschedule", transposed)


class TvmProgram(Program):
    """Started by `worker.py`."""

    decoder = Tvm

    def __init__(self, threads: int) -> None:
        super().__init__(self.decoder, tvm.__version__, threads)


class DlightProgram(TvmProgram):
    """Started by `worker.py`."""

    decoder = Dlight


class TunedProgram(TvmProgram):
    """Started by `worker.py`."""

    decoder = Tuned


def _model(work: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The configuration, and the weights by the names that they have in `Llama`."""
    config = json.loads((work / "hf/config.json").read_text())
    arrays = load_file(work / "hf/model.safetensors")
    plain = {name: name.removeprefix("model.") for name in arrays}
    for part in (".self_attn", ".mlp"):
        plain = {name: short.replace(part, "") for name, short in plain.items()}
    named = {plain[name]: array for name, array in arrays.items()}
    return config, {**named, "lm_head.weight": named["embed_tokens.weight"]}


def _put(array: np.ndarray) -> tvm.runtime.Tensor:
    return tvm.runtime.tensor(np.ascontiguousarray(array), tvm.cpu())
