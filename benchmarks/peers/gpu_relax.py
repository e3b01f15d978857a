"""This compiler on a device: batch, lengths and sizes of products are symbols."""

import os
from typing import Any

import gpu_cases
import numpy as np
from worker import Prepared

import relax_mlir
from relax_mlir.executable import Executable
from relax_mlir.llm.modules.config import DecoderConfig, Rope
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.llm.modules.nn import BF16, Storage

COPY = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  return %0 : !x
}
"""
MATMUL = """
!x = tensor<?x?xbf16, #graph.shape<["m", "k"]>>
!w = tensor<?x?xbf16, #graph.shape<["k", "n"]>>
!y = tensor<?x?xbf16, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}
"""
ATTENTION = """
!q = tensor<?x?xHxDxbf16, #graph.shape<["b", "n", H, D]>>
!k = tensor<?x?xGxDxbf16, #graph.shape<["b", "m", G, D]>>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %0 = "graph.nn_batched_attention"(%q, %k, %v)
    {scale = SCALE : f64, causal = CAUSAL, operandSegmentSizes = array<i32: 1, 1, 1, 0>}
    : (!q, !k, !k) -> !q
  return %0 : !q
}
"""


class Kernels:
    """Compiled for each kind of case; launches that repeat are CUDA graphs."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        pass

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["kernel"] == "decode":
            return _decoder(case)
        executable = relax_mlir.compile(_text(case), case["target"])
        device = executable.device
        assert device is not None, "the target has one"
        given = [device.array(x, case["dtype"]) for x in gpu_cases.arguments(case).values()]
        return _prepared(executable, given)


class WithoutGraphs(Kernels):
    """The same, launched one by one."""

    def __init__(self, threads: int) -> None:
        os.environ["RELAX_CUDA_GRAPHS"] = "0"


def _text(case: dict) -> str:
    if case["kernel"] != "attention":
        return {"copy": COPY, "matmul": MATMUL}[case["kernel"]]
    dims = case["dims"]
    sizes = {"H": dims["heads"], "G": dims["kv_heads"], "D": dims["head_dim"]}
    text = ATTENTION
    for name, size in sizes.items():
        text = text.replace(f"x{name}x", f"x{size}x").replace(f"{name}]>", f"{size}]>")
        text = text.replace(f", {name},", f", {size},")
    text = text.replace("SCALE", str(float(dims["head_dim"]) ** -0.5))
    return text.replace("CAUSAL", str(gpu_cases.is_causal(case)).lower())


def _decoder(case: dict) -> Prepared:
    dims = case["dims"]
    config = DecoderConfig(
        vocab_size=dims["vocab"], hidden_size=dims["hidden"], num_layers=dims["layers"],
        intermediate_size=dims["intermediate"], num_heads=dims["heads"],
        num_kv_heads=dims["kv_heads"], head_dim=dims["head_dim"],
        ropes=(Rope(gpu_cases.BASE, dims["head_dim"]),), norm_eps=gpu_cases.EPSILON,
        max_context=8192, tie_embeddings=False, bos_id=0, eos_ids=frozenset({1}),
    )  # fmt: skip
    schemes = {name: BF16 for name, shape in config.weight_shapes().items() if len(shape) == 2}
    model = Transformer(config, Storage(schemes, activations=BF16, cache=BF16))
    executable = relax_mlir.compile(export(model), case["target"])
    device = executable.device
    assert device is not None, "the target has one"
    cache = np.zeros((dims["kv_heads"], dims["context"] + 1, dims["head_dim"]), np.uint16)
    caches = [device.array(cache, "bf16") for _ in range(2 * dims["layers"])]
    weights = [
        device.array(gpu_cases.parameter(each.name, each.dims), each.dtype)
        for each in model.parameters()
    ]
    tokens = device.array(np.ones(1, np.int32))
    return _prepared(executable, [tokens, (dims["context"], 1), *caches, *weights])


def _prepared(executable: Executable, given: list[Any]) -> Prepared:
    call = executable["main"].bind(*given)

    def run() -> list:
        results = call.run()
        return [results[0] if isinstance(results, tuple) else results]

    return Prepared(run, finish=_as_floats)


def _as_floats(result: Any) -> np.ndarray:
    array = result.numpy()
    return array if array.dtype == np.float32 else gpu_cases.widened(array.view(np.uint16))
