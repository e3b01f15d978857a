"""Compiles a decoder with IREE: WORK/iree.vmfb.

    python llm_iree_build.py WORK

PyTorch exports a layer for prompts, one for steps, and the end of the decoder; functions that call
the layers one after the other are written around them. Weights and caches are arguments.
"""

import json
import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from iree.compiler import ir
from iree.compiler.extras.fx_importer import FxImporter
from iree.compiler.tools import compile_str
from peers.llm_plain import norm, rotate
from torch import Tensor, nn
from torch.export import Dim

FLAGS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-data-tiling=false")
PARTS = ("input_norm", "q", "k", "v", "o", "post_norm", "gate", "up", "down")
"""A layer's weights, in the order of its arguments."""


class Layer(nn.Module):
    """What layers have in common; their weights are arguments."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim, self.eps = config["head_dim"], config["rms_norm_eps"]

    def project(self, x: Tensor, cos: Tensor, sin: Tensor, *w: Tensor) -> list[Tensor]:
        """Queries, keys and values of x[1, n, hidden], each [1, heads, n, dim]."""
        x = norm(x, w[0], self.eps)
        q, k, v = (
            F.linear(x, w[i]).unflatten(-1, (-1, self.dim)).transpose(1, 2) for i in (1, 2, 3)
        )
        return [rotate(q, cos, sin), rotate(k, cos, sin), v]

    def finish(self, x: Tensor, joined: Tensor, *w: Tensor) -> Tensor:
        """The layer's output, given what all heads attended to: [1, n, heads * dim]."""
        x = x + F.linear(joined, w[4])
        h = norm(x, w[5], self.eps)
        return x + F.linear(F.silu(F.linear(h, w[6])) * F.linear(h, w[7]), w[8])


class Begin(Layer):
    """A layer of a prompt into empty caches."""

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, *w: Tensor
    ) -> tuple[Tensor, ...]:
        """Output, keys and values; the mask [n, n] is added to scores."""
        q, k, v = self.project(x, cos, sin, *w)
        heads = []
        for head in range(self.heads):  # one by one, as the exporter takes no views of them all
            shared = head * self.kv_heads // self.heads
            scores = q[0, head] @ k[0, shared].T * self.dim**-0.5 + mask
            heads.append(scores.softmax(-1) @ v[0, shared])
        return self.finish(x, torch.cat(heads, -1)[None], *w), k, v


class Step(Layer):
    """A layer of a single token."""

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, past_k: Tensor, past_v: Tensor, *w: Tensor
    ) -> tuple[Tensor, ...]:
        """Output, keys and values; the caches are [1, kv_heads, m, dim]."""
        q, k, v = self.project(x, cos, sin, *w)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        queries = q.reshape(1, self.kv_heads, -1, self.dim)
        scores = queries @ k.transpose(2, 3) * self.dim**-0.5
        joined = (scores.softmax(-1) @ v).reshape(1, 1, -1)
        return self.finish(x, joined, *w), k, v


class End(Layer):
    """Logits of a token."""

    def forward(self, x: Tensor, weight: Tensor, embedding: Tensor) -> Tensor:
        """x is [1, 1, hidden]."""
        return F.linear(norm(x, weight, self.eps), embedding)


def build(work: Path) -> None:
    """Compiles the decoder for this machine."""
    config = json.loads((work / "hf/config.json").read_text())
    text = imported(config)
    layers = config["num_hidden_layers"]
    text = text.rstrip().removesuffix("}")
    for name in ("begin", "step"):
        text += _whole(text, name, layers)
    (work / "iree.mlir").write_text(text + "}\n")
    compile_str(
        text + "}\n",
        target_backends=["llvm-cpu"],
        input_type="torch",
        extra_args=FLAGS,
        output_file=str(work / "iree.vmfb"),
    )


def imported(config: dict) -> str:
    """The layers and the end as a module's text, in the torch dialect."""
    hidden, inner, dim = (config[k] for k in ("hidden_size", "intermediate_size", "head_dim"))
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    shapes = [(hidden,), (q, hidden), (kv, hidden), (kv, hidden), (hidden, q), (hidden,)]
    shapes += [(inner, hidden), (inner, hidden), (hidden, inner)]
    weights = tuple(torch.zeros(shape) for shape in shapes)
    n, m = Dim("n", min=2, max=8192), Dim("m", min=2, max=8192)
    heads = config["num_key_value_heads"]
    # Each argument is a tensor of its own: the exporter takes the same one for one argument.
    tables = [torch.zeros(1, 1, 5, dim) for _ in range(2)]
    rows = [torch.zeros(1, 1, 1, dim) for _ in range(2)]
    caches = [torch.zeros(1, heads, 7, dim) for _ in range(2)]
    fixed = [None] * len(weights)
    programs = {
        "begin_layer": (
            Begin(config),
            (torch.zeros(1, 5, hidden), *tables, torch.zeros(5, 5), *weights),
            ({1: n}, {2: n}, {2: n}, {0: n, 1: n}, tuple(fixed)),
        ),
        "step_layer": (
            Step(config),
            (torch.zeros(1, 1, hidden), *rows, *caches, *weights),
            (None, None, None, {2: m}, {2: m}, tuple(fixed)),
        ),
        "end": (
            End(config),
            (torch.zeros(1, 1, hidden), weights[0], torch.zeros(config["vocab_size"], hidden)),
            None,
        ),
    }
    with ir.Context() as context:
        importer = FxImporter(context=context)
        for name, (module, arguments, dynamic) in programs.items():
            program = torch.export.export(module.eval(), arguments, dynamic_shapes=dynamic)
            program = program.run_decompositions()
            visible = None if name == "end" else "private"
            importer.import_program(program, func_name=name, func_visibility=visible)
        return str(importer.module)


def _whole(text: str, name: str, layers: int) -> str:
    """A function that calls `name`_layer so often; caches and weights follow layer by layer."""
    match = re.search(rf"func\.func private @{name}_layer\((.*)\) -> \((.*)\)", text)
    assert match
    types = [each.split(": ")[1] for each in match[1].split(", %")]
    results = re.findall(r"!torch\.vtensor<[^>]*>", match[2])
    caches = 2 if name == "step" else 0
    common, own = (
        types[1 : len(types) - len(PARTS) - caches],
        types[len(types) - len(PARTS) - caches :],
    )
    arguments = [f"%x: {types[0]}", *(f"%c{i}: {each}" for i, each in enumerate(common))]
    body, outs, x = [], [], "%x"
    for layer in range(layers):
        arguments += [f"%w{layer}_{i}: {each}" for i, each in enumerate(own)]
        operands = [x, *(f"%c{i}" for i in range(len(common)))]
        operands += [f"%w{layer}_{i}" for i in range(len(own))]
        body.append(
            f"    %r{layer}:3 = call @{name}_layer({', '.join(operands)}) : "
            f"({', '.join(types)}) -> ({', '.join(results)})"
        )
        x = f"%r{layer}#0"
        outs += [f"%r{layer}#1", f"%r{layer}#2"]
    signature = ", ".join([results[0], *results[1:] * layers])
    return (
        f"  func.func @{name}({', '.join(arguments)}) -> ({signature}) {{\n"
        + "\n".join(body)
        + f"\n    return {', '.join([x, *outs])} : {signature}\n  }}\n"
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
