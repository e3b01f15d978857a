"""TVM Relax as it compiles by default, on a decoder written with its front end.

python llm_tvm.py WORK     builds WORK/tvm.so, and WORK/tvm.json: the order of its weights
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tvm
from peers.llm_decoder import Decoder, Program
from safetensors.numpy import load_file
from tvm import relax, te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim = config["head_dim"]
        self.input_layernorm = nn.RMSNorm(hidden, -1, config["rms_norm_eps"], bias=False)
        self.post_attention_layernorm = nn.RMSNorm(hidden, -1, config["rms_norm_eps"], bias=False)
        self.q_proj = nn.Linear(hidden, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, hidden, bias=False)
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, past_k: Tensor, past_v: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x is [n, hidden], the table [n, dim], the caches [kv_heads, m, dim]."""
        n, group = x.shape[0], self.heads // self.kv_heads
        h = self.input_layernorm(x)
        q = self._split(self.q_proj(h), n, self.heads)
        k = self._split(self.k_proj(h), n, self.kv_heads)
        v = self._split(self.v_proj(h), n, self.kv_heads)
        k = op.concat([past_k, _rotate(k, cos, sin)], 1)
        v = op.concat([past_v, v], 1)
        keys = op.permute_dims(op.repeat(k, group, 0), [0, 2, 1])
        scores = op.matmul(_rotate(q, cos, sin), keys)
        weights = op.softmax(op.tensor_expr_op(_masked, "mask", [scores * self.dim**-0.5]), -1)
        attended = op.matmul(weights, op.repeat(v, group, 0))
        joined = op.reshape(op.permute_dims(attended, [1, 0, 2]), [n, self.heads * self.dim])
        x = x + self.o_proj(joined)
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(op.silu(self.gate_proj(h)) * self.up_proj(h)), k, v

    def _split(self, x: Tensor, n: object, heads: int) -> Tensor:
        return op.permute_dims(op.reshape(x, [n, heads, self.dim]), [1, 0, 2])


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = op.split(x, 2, -1)
    return x * cos + op.concat([op.negative(second), first], -1) * sin


def _masked(scores: te.Tensor) -> te.Tensor:
    before = scores.shape[2] - scores.shape[1]
    return te.compute(
        scores.shape,
        lambda h, i, j: tirx.if_then_else(
            j <= i + before, scores[h, i, j], tirx.min_value("float32")
        ),
    )


class Llama(nn.Module):
    """The whole decoder; logits of the last token, then the caches."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList([Layer(config) for _ in range(config["num_hidden_layers"])])
        self.norm = nn.RMSNorm(config["hidden_size"], -1, config["rms_norm_eps"], bias=False)

    def begin(self, tokens: Tensor, cos: Tensor, sin: Tensor, past: list[Tensor]) -> tuple:
        """A prompt."""
        return self._run(tokens, cos, sin, past)

    def step(self, tokens: Tensor, cos: Tensor, sin: Tensor, past: list[Tensor]) -> tuple:
        """A single token."""
        return self._run(tokens, cos, sin, past)

    def _run(self, tokens: Tensor, cos: Tensor, sin: Tensor, past: list[Tensor]) -> tuple:
        x = self.embed_tokens(tokens)
        caches = []
        for index, layer in enumerate(self.layers):
            x, k, v = layer(x, cos, sin, past[2 * index], past[2 * index + 1])
            caches += [k, v]
        last = op.tensor_expr_op(
            lambda x: te.compute((1, x.shape[1]), lambda _, j: x[x.shape[0] - 1, j]), "last", [x]
        )
        return op.matmul(self.norm(last), op.permute_dims(self.embed_tokens.weight)), caches


class Tvm(Decoder):
    """A built library on the virtual machine; caches are arrays that grow."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        os.environ["TVM_NUM_THREADS"] = str(threads)
        config, arrays = _model(work)
        self._device = tvm.cpu()
        library = tvm.runtime.load_module(str(work / "tvm.so"))
        self._machine = relax.VirtualMachine(library, self._device)
        names = json.loads((work / "tvm.json").read_text())
        self._weights = [self._put(arrays[name]) for name in names]
        half = config["head_dim"] // 2
        self._frequencies = np.tile(config["rope_theta"] ** (-np.arange(half) / half), 2)
        empty = np.zeros((config["num_key_value_heads"], 0, config["head_dim"]), np.float32)
        self._kept = {0: [self._put(empty)] * (2 * config["num_hidden_layers"])}
        self._length = 0
        self._row = np.empty(0, np.float32)

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        begin, count = self._length, len(tokens)
        angles = np.outer(np.arange(begin, begin + count), self._frequencies)
        cos, sin = (self._put(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        ids = self._put(np.array(tokens, np.int32))
        function = self._machine["step" if count == 1 else "begin"]
        logits, caches = function(ids, cos, sin, self._kept[begin], *self._weights)
        self._row = logits
        self._length += count
        self._kept[self._length] = list(caches)

    def truncate(self, length: int) -> None:
        """See `Decoder`; caches of every length are still there."""
        self._length = length
        self._kept = {at: caches for at, caches in self._kept.items() if at in (0, length)}

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._row.numpy().reshape(-1)

    def _put(self, array: np.ndarray) -> object:
        return tvm.runtime.tensor(np.ascontiguousarray(array), self._device)


class TvmProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(Tvm, tvm.__version__, threads)


def _model(work: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The configuration, and the weights by the names that they have in `Llama`."""
    config = json.loads((work / "hf/config.json").read_text())
    arrays = load_file(work / "hf/model.safetensors")
    plain = {name: name.removeprefix("model.") for name in arrays}
    for part in (".self_attn", ".mlp"):
        plain = {name: short.replace(part, "") for name, short in plain.items()}
    return config, {plain[name]: array for name, array in arrays.items()}


def build(work: Path) -> None:
    """Compiles the decoder for this machine."""
    config, _ = _model(work)
    cache = nn.spec.Tensor([config["num_key_value_heads"], "m", config["head_dim"]], "float32")
    caches = [cache] * (2 * config["num_hidden_layers"])

    def spec(n: str | int) -> dict:
        table = nn.spec.Tensor([n, config["head_dim"]], "float32")
        tokens = nn.spec.Tensor([n], "int32")
        return {"tokens": tokens, "cos": table, "sin": table, "past": caches}

    module, weights = Llama(config).export_tvm({"begin": spec("n"), "step": spec(1)})
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})
    tvm.compile(module, target).export_library(str(work / "tvm.so"))
    names = [name for name, _ in weights]
    (work / "tvm.json").write_text(json.dumps(names))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
