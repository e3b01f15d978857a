"""What NVIDIA's assembler says of the kernels of models: registers, and bytes that they spill.

    python benchmarks/gpu_kernels.py
    python benchmarks/gpu_kernels.py --model smollm2,resnet18 --arch sm_90a
    python benchmarks/gpu_kernels.py --model FILE.mlir --level 3
    python benchmarks/gpu_kernels.py --model resnet18 --dtype bf16

It needs no GPU, but ptxas: `pip install nvidia-cuda-nvcc`. The exit status is 1 if a kernel spills.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from peers.model_relax import export as export_case

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import device_kernels
from relax_mlir.codegen.gpu.ptx import compile_ptx
from relax_mlir.codegen.gpu.ptx.assembler import Assembled, assemble, assembler
from relax_mlir.dialects import make_context
from relax_mlir.errors import UsageError
from relax_mlir.llm.modules.config import DecoderConfig, Rope
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import outlining
from relax_mlir.target import Device
from relax_mlir.tools.cli import described, guard

ARCHES = ("sm_80", "sm_90a", "sm_100")
HEAD = """
!x = tensor<?x512x?x?xf32, #graph.shape<["n", 512, "h", "w"]>>
!y = tensor<?x1000xf32, #graph.shape<["n", 1000]>>
func.func @main(%x: !x, %w: tensor<512x1000xf32>, %b: tensor<1000xf32>) -> !y {
  %0 = "graph.mean"(%x) {axes = array<i64: 2, 3>, keepdims = false}
    : (!x) -> tensor<?x512xf32, #graph.shape<["n", 512]>>
  %1 = "graph.matmul"(%0, %w)
    : (tensor<?x512xf32, #graph.shape<["n", 512]>>, tensor<512x1000xf32>) -> !y
  %2 = "graph.add"(%1, %b) : (!y, tensor<1000xf32>) -> !y
  return %2 : !y
}
"""

PRODUCT = """
!x = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}
"""


ATTENTION = """
!q = tensor<?x8xSIZExTYPE, #graph.shape<["n", 8, SIZE]>>
!c = tensor<2x?xSIZExTYPE, #graph.shape<[2, "c", SIZE]>>
func.func @main(%q: !q, %k: !c, %v: !c, %at: !graph.shape_value<["m"]>) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v)
      {position = #graph.shape<["m"]>, scale = 0.125 : f64, causal = true} : (!q, !c, !c) -> !q
  return %0 : !q
}
"""


def main() -> int:
    """Runs the command; 1 if a kernel spills."""
    return guard("gpu_kernels", run)


def run() -> int:
    """Prints a table for each model; raises UsageError."""
    options = _options()
    if assembler() is None:
        raise UsageError("there is no ptxas: pip install nvidia-cuda-nvcc has it")
    spills = 0
    for model in options.model.split(","):
        usages: dict[str, dict[str, Assembled]] = {}
        for arch in options.arch.split(","):
            for name, usage in _usages(model, arch, options.level, options.dtype):
                usages.setdefault(name, {})[arch] = usage
                spills += usage.spilled_bytes > 0
        print(f"\n{model}: registers of a thread\n\n{_table(usages)}", flush=True)
    print(f"\n{spills} kernels spill")
    return int(spills > 0)


def _options() -> argparse.Namespace:
    parser = described("Prints what ptxas says of kernels of models.", "gpu_kernels")
    names = ", ".join(MODELS)
    parser.add_argument(
        "--model", default=",".join(MODELS), help=f"any of {names}, or files of modules"
    )
    parser.add_argument("--arch", default=",".join(ARCHES), help="such as sm_80,sm_90a")
    parser.add_argument("--level", type=int, default=2, help="of the pipeline: 0 to 3")
    parser.add_argument(
        "--dtype", default="f32", choices=("f32", "f16", "bf16"), help="of products of f32"
    )
    return parser.parse_args()


def _decoder(hidden: int, intermediate: int, heads: int, kv_heads: int, size: int) -> list[str]:
    """A decoder of one layer, which has the kernels of all."""
    config = DecoderConfig(
        vocab_size=49152, hidden_size=hidden, intermediate_size=intermediate, num_layers=1,
        num_heads=heads, num_kv_heads=kv_heads, head_dim=size,
        ropes=(Rope(1e4, size),), norm_eps=1e-5, max_context=8192, tie_embeddings=True,
        bos_id=0, eos_ids=frozenset({1}),
    )  # fmt: skip
    return [export(Transformer(config))]


def _minilm() -> list[str]:
    return [export_case({"model": "minilm", "dtype": "f32"}, {})]


def _resnet18() -> list[str]:
    """The stem, the blocks and the head, for any batch, height and width."""
    parts = [
        ("stem", 64),
        *(("basic", 64 << i) for i in range(4)),
        *(("down", 64 << i) for i in range(3)),
    ]
    common = {"model": "resnet", "norm": "folded", "dtype": "f32"}
    blocks = [export_case({**common, "kind": kind, "width": width}, {}) for kind, width in parts]
    return [*blocks, HEAD]


def _products() -> list[str]:
    """Products of any size, by tensor cores where the device has them."""
    return [PRODUCT.replace("TYPE", element) for element in ("f32", "f16", "bf16", "i8")]


def _attention() -> list[str]:
    """Attention over a cache, by tensor cores where the device has them."""
    return [
        ATTENTION.replace("TYPE", element).replace("SIZE", size)
        for element in ("f32", "f16", "bf16")
        for size in ("64", "80", "128")
    ]


MODELS = {
    "products": _products,
    "attention": _attention,
    "smollm2": lambda: _decoder(576, 1536, 9, 3, 64),
    "llama-3-8b": lambda: _decoder(4096, 14336, 32, 8, 128),
    "minilm": _minilm,
    "resnet18": _resnet18,
}


def _usages(model: str, arch: str, level: int, dtype: str) -> Iterator[tuple[str, Assembled]]:
    """The name of each kernel, which begins with its module's position if there are several."""
    if model not in MODELS and not Path(model).is_file():
        raise UsageError(f"no model '{model}', nor a file; there are {', '.join(MODELS)}")
    texts = MODELS[model]() if model in MODELS else [Path(model).read_text()]
    passes = outlining(f"native@cuda:{arch}", level)
    if dtype != "f32":
        passes = passes.replace("(", f"(relax-mixed-precision{{dtype={dtype}}},", 1)
    device = Device.parse(f"cuda:{arch}")
    for position, text in enumerate(texts):
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            Pipeline.parse(passes).run(module)
            kernels = [(k.name, compile_ptx(k, device)) for k in device_kernels(module.operation)]
        for name, ptx in kernels:
            short = name.removesuffix("_kernel")
            yield f"{position} {short}" if len(texts) > 1 else short, assemble(ptx, arch)


def _table(usages: Mapping[str, Mapping[str, Assembled]]) -> str:
    arches = list(dict.fromkeys(arch for by_arch in usages.values() for arch in by_arch))
    rows = [["kernel", *arches], ["---"] * (len(arches) + 1)]
    for name, by_arch in usages.items():
        rows.append([name, *(_cell(by_arch.get(arch)) for arch in arches)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(usage: Assembled | None) -> str:
    if usage is None:  # other devices launch more kernels
        return ""
    spilled = f", {usage.spilled_bytes} bytes spilled" if usage.spilled_bytes else ""
    serialized = ", products one by one" if usage.serializes_products else ""
    return f"{usage.registers}{spilled}{serialized}"


if __name__ == "__main__":
    sys.exit(main())
