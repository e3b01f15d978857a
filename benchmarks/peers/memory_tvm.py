"""Plans the memory of a decoder with TVM Relax, and writes what it planned.

    python memory_tvm.py CONFIG.json > PLANS.json

For each function: its allocations, calls and views in order, and the sizes of its storages in
bytes, with and without the upper bounds of its symbols. Attention, which also appends to the caches
and rotates, is one external function, as the engines on top of TVM have it.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import tvm
from llm_tvm_build import legalized
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

DTYPE = "float16"
KINDS = {"relax.builtin.alloc_tensor": "alloc", "relax.reshape": "view"}


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        hidden, inner = config["hidden"], config["inner"]
        self.heads, self.kv_heads, self.dim = (config[k] for k in ("heads", "kv_heads", "dim"))
        self.attention_norm = nn.RMSNorm(hidden, -1, 1e-5, bias=False)
        self.mlp_norm = nn.RMSNorm(hidden, -1, 1e-5, bias=False)
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv_heads) * self.dim, bias=False)
        self.out = nn.Linear(self.heads * self.dim, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor, cache: Tensor) -> Tensor:
        """x is [n, hidden]."""
        n = x.shape[0]
        qkv = self.qkv(self.attention_norm(x))
        qkv = op.reshape(qkv, [n, self.heads + 2 * self.kv_heads, self.dim])
        result = Tensor.placeholder([n, self.heads, self.dim], DTYPE)
        mixed = op.extern("attention", [cache, qkv], result)
        x = x + self.out(op.reshape(mixed, [n, self.heads * self.dim]))
        gate, up = op.split(self.gate_up(self.mlp_norm(x)), 2, -1)
        return x + self.down(op.silu(gate) * up)


class Decoder(nn.Module):
    """From tokens to logits."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        hidden, words = config["hidden"], config["vocabulary"]
        self.embedding = nn.Embedding(words, hidden)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config["layers"])])
        self.norm = nn.RMSNorm(hidden, -1, 1e-5, bias=False)
        self.head = nn.Linear(hidden, words, bias=False)

    def prefill(self, tokens: Tensor, last: Tensor, cache: Tensor) -> Tensor:
        """The tokens of a prompt; logits of the last one."""
        return self._logits(op.take(self._features(tokens, cache), last, 0))

    def decode(self, tokens: Tensor, cache: Tensor) -> Tensor:
        """A token of each sequence of a batch; logits of all."""
        return self._logits(self._features(tokens, cache))

    def _features(self, tokens: Tensor, cache: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, cache)
        return x

    def _logits(self, x: Tensor) -> Tensor:
        return op.astype(self.head(self.norm(x)), "float32")


def lowered(config: dict) -> tvm.IRModule:
    """The decoder with explicit allocations, which nothing has planned yet."""
    model = Decoder(config)
    model.to(DTYPE)
    tokens, last = (nn.spec.Tensor([dim], "int32") for dim in ("n", 1))
    cache = nn.spec.Tensor(["c"], DTYPE)
    module, _ = model.export_tvm(
        {
            "prefill": {"tokens": tokens, "last": last, "cache": cache},
            "decode": {"tokens": tokens, "cache": cache},
        }
    )
    target = tvm.target.Target("llvm")
    passes = [
        relax.transform.DeadCodeElimination(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
    ]
    with target:
        return tvm.ir.transform.Sequential(passes)(legalized(module, target))


def described(function: relax.Function) -> dict:
    """The function's parameters, its body in order, and what it returns."""
    names: dict[relax.Var, str] = {}
    parameters = []
    for index, parameter in enumerate(function.params):
        names[parameter] = f"arg{index}"
        parameters.append([names[parameter], *_annotation(parameter)])
    body = list(_body(function.body, names))
    return {"parameters": parameters, "body": body, "result": names[function.body.body]}


def _body(sequence: relax.SeqExpr, names: dict[relax.Var, str]) -> Iterator[list]:
    for binding in (b for block in sequence.blocks for b in block.bindings):
        variable, value = binding.var, binding.value
        if isinstance(value, relax.Var):
            names[variable] = names[value]
            continue
        name = names[variable] = f"v{len(names)}"
        kind = KINDS.get(getattr(value.op, "name", ""))
        if kind == "alloc":
            yield ["alloc", name, *_annotation(variable)]
        elif kind == "view":
            yield ["view", name, names[value.args[0]], *_annotation(variable)]
        else:
            yield ["call", [names[arg] for arg in value.args if isinstance(arg, relax.Var)]]


def _annotation(variable: relax.Var) -> tuple[list[str], str]:
    return [_text(dim) for dim in variable.ty.shape], str(variable.ty.dtype)


def _text(expression: tvm.ir.Expr) -> str:
    return re.sub(r"T\.int64\((\d+)\)", r"\1", str(expression))


def storages(function: relax.Function) -> list[str]:
    """The sizes of all storages in bytes."""
    return [
        _text(binding.value.args[0].values[0])
        for block in function.body.blocks
        for binding in block.bindings
        if getattr(getattr(binding.value, "op", None), "name", "") == "relax.memory.alloc_storage"
    ]


def main(path: Path) -> None:
    """Writes the plans for a configuration to standard output."""
    config = json.loads(path.read_text(encoding="utf-8"))
    module = lowered(config)
    result = {name: described(module[name]) for name in config["bounds"]}
    plan = relax.transform.StaticPlanBlockMemory()
    unbounded = plan(module)
    for name, bound in config["bounds"].items():
        module[name] = module[name].with_attr("tir_var_upper_bound", {"n": bound})
    bounded = plan(module)
    for name, function in result.items():
        function["unbounded"] = storages(unbounded[name])
        function["bounded"] = storages(bounded[name])
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
