"""The kernels of a model of SmolLM2's dimensions: how many there are, and that all use vectors."""

import pytest

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.vectorization import scalar_inner_loops
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp
from relax_mlir.llm.modules.config import DecoderConfig, Rope
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline

CONFIG = DecoderConfig(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_layers=2,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    ropes=(Rope(100000.0, 64),),
    norm_eps=1e-5,
    max_context=8192,
    tie_embeddings=True,
    bos_id=1,
    eos_ids=frozenset([2]),
)
PER_LAYER = 10
REST = 6
"""Embedding, angles, cosine, sine, last norm and projection."""


def scheduled(opt_level: int, target: str) -> ir.Module:
    """The model's module after `relax-schedule`; needs a context."""
    passes = pipeline(target, opt_level).removeprefix("builtin.module(").removesuffix(")")
    before, _, _ = passes.partition(",relax-lower-calls")
    module = ir.Module.parse(export(Transformer(CONFIG)))
    Pipeline.parse(f"builtin.module({before})").run(module)
    return module


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("opt_level", [0, 2, 3])
def test_no_kernel_walks_memory_by_scalars(opt_level, target):
    with make_context(), ir.Location.unknown():
        assert scalar_inner_loops(scheduled(opt_level, target).operation) == []


@pytest.mark.parametrize("opt_level", [2, 3])
def test_kernels_per_layer(opt_level):
    with make_context(), ir.Location.unknown():
        module = scheduled(opt_level, "x86-64-v4")
        main = next(f for f in graph_functions(module.operation) if f.name.value == "main")
        calls = [
            op for op in main.entry_block.operations if type(op) in (CallTirOp, CallTirInplaceOp)
        ]
        kernels = [call for call in calls if not call.callee_name.startswith("reshape")]
        assert len(kernels) <= PER_LAYER * CONFIG.num_layers + REST
