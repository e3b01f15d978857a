"""Compiles a decoder with TVM Relax: by default, with dlight's rules, or tuned by MetaSchedule.

    python llm_tvm_build.py WORK default|dlight|metaschedule TRIALS

writes WORK/tvm-SCHEDULES.so, and WORK/tvm-SCHEDULES.json: the order of its weights.
"""

import json
import os
import sys
from pathlib import Path

import tvm
from tvm import relax, te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op
from tvm.s_tir import dlight
from tvm.s_tir import meta_schedule as ms

TRIALS_AT_ONCE = 24
TIMEOUT = 300.0  # seconds of a build or a run, which another program may hold up


class Transposed(nn.Module):
    """A linear layer whose weights are [in, out]: columns follow each other, as vectors do."""

    def __init__(self, inner: int, outer: int, bias: bool = False) -> None:
        super().__init__()
        assert not bias
        self.weight = nn.Parameter((inner, outer))

    def forward(self, x: Tensor) -> Tensor:
        """[n, in] -> [n, out]."""
        return op.matmul(x, self.weight)


class Layer(nn.Module):
    """One decoder layer, with linear layers of a class."""

    def __init__(self, config: dict, linear: type) -> None:
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim = config["head_dim"]
        self.input_layernorm = nn.RMSNorm(hidden, -1, config["rms_norm_eps"], bias=False)
        self.post_attention_layernorm = nn.RMSNorm(hidden, -1, config["rms_norm_eps"], bias=False)
        self.q_proj = linear(hidden, self.heads * self.dim, bias=False)
        self.k_proj = linear(hidden, self.kv_heads * self.dim, bias=False)
        self.v_proj = linear(hidden, self.kv_heads * self.dim, bias=False)
        self.o_proj = linear(self.heads * self.dim, hidden, bias=False)
        self.gate_proj = linear(hidden, inner, bias=False)
        self.up_proj = linear(hidden, inner, bias=False)
        self.down_proj = linear(inner, hidden, bias=False)

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

    def __init__(self, config: dict, linear: type = nn.Linear) -> None:
        super().__init__()
        hidden, words = config["hidden_size"], config["vocab_size"]
        self.embed_tokens = nn.Embedding(words, hidden)
        count = config["num_hidden_layers"]
        self.layers = nn.ModuleList([Layer(config, linear) for _ in range(count)])
        self.norm = nn.RMSNorm(hidden, -1, config["rms_norm_eps"], bias=False)
        self.lm_head = linear(hidden, words, bias=False)

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
        return self.lm_head(self.norm(last)), caches


def build(work: Path, schedules: str, trials: int) -> None:
    """Compiles the decoder for this machine; MetaSchedule's has steps alone."""
    config = json.loads((work / "hf/config.json").read_text())
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": os.cpu_count() or 1})
    is_tuned = schedules == "metaschedule"
    if is_tuned and not (work / "tvm-dlight.so").exists():
        build(work, "dlight", trials)
    module, names = steps(config) if is_tuned else prompts_and_steps(config)
    if schedules != "default":
        module = legalized(module, target)
    if is_tuned:
        with target, tune(module, target, work / "tvm-tuning", trials):
            module = relax.transform.MetaScheduleApplyDatabase()(module)
    if schedules != "default":
        with target:  # what is scheduled already stays as it is
            rules = dlight.cpu.GEMV(), dlight.cpu.Reduction()
            module = dlight.ApplyDefaultSchedule(*rules)(module)
    print("compiling", flush=True)
    (work / f"tvm-{schedules}.json").write_text(json.dumps(names))
    tvm.compile(module, target).export_library(str(work / f"tvm-{schedules}.so"))


def prompts_and_steps(config: dict) -> tuple[tvm.IRModule, list[str]]:
    """The decoder as a module, and the names of its weights in order."""
    module, weights = Llama(config).export_tvm(
        {"begin": _arguments(config, "n"), "step": _arguments(config, 1)}
    )
    return module, [name for name, _ in weights]


def steps(config: dict) -> tuple[tvm.IRModule, list[str]]:
    """Steps only, with transposed weights."""
    module, weights = Llama(config, Transposed).export_tvm({"step": _arguments(config, 1)})
    return module, [name for name, _ in weights]


def _arguments(config: dict, n: str | int) -> dict:
    cache = nn.spec.Tensor([config["num_key_value_heads"], "m", config["head_dim"]], "float32")
    table = nn.spec.Tensor([n, config["head_dim"]], "float32")
    return {
        "tokens": nn.spec.Tensor([n], "int32"),
        "cos": table,
        "sin": table,
        "past": [cache] * (2 * config["num_hidden_layers"]),
    }


def legalized(module: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """The module with fused tensor programs, which nothing has scheduled yet."""
    passes = [
        relax.transform.FuseTransposeMatmul(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
    with target:
        return tvm.ir.transform.Sequential(passes)(module)


def tune(
    module: tvm.IRModule, target: tvm.target.Target, folder: Path, trials: int
) -> ms.database.Database:
    """Tunes schedules of products with static extents: those of a step.

    MetaSchedule tunes nothing that has a symbol. `trials` are distributed over the products; those
    of an earlier build that was interrupted count.
    """
    folder.mkdir(exist_ok=True)
    database = ms.database.Database.create("json", work_dir=str(folder))
    left = trials - len(database.get_all_tuning_records())
    if left <= 0:
        return database
    tasks = [
        task
        for task in ms.relax_integration.extract_tasks(module, target)
        if "matmul" in task.task_name and _is_static(task.dispatched[0]["main"])
    ]
    contexts, weights = ms.relax_integration.extracted_tasks_to_tune_contexts(tasks, str(folder))
    return ms.tune.tune_tasks(
        tasks=contexts,
        task_weights=weights,
        work_dir=str(folder),
        max_trials_global=left,
        num_trials_per_iter=TRIALS_AT_ONCE,
        database=database,
        builder=ms.builder.LocalBuilder(timeout_sec=TIMEOUT),
        runner=ms.runner.LocalRunner(timeout_sec=TIMEOUT),
    )


def _is_static(function: tirx.PrimFunc) -> bool:
    shapes = [getattr(parameter.ty, "shape", None) for parameter in function.params]
    return all(
        shape is not None and all(isinstance(extent, tirx.IntImm) for extent in shape)
        for shape in shapes
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
