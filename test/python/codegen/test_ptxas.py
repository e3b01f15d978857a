"""What NVIDIA's assembler says of kernels of language models: all fit into registers."""

import pytest

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import device_kernels
from relax_mlir.codegen.gpu.ptx import compile_ptx
from relax_mlir.codegen.gpu.ptx.assembler import assemble, assembler
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError
from relax_mlir.llm.modules.config import DecoderConfig, Rope
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined

pytestmark = pytest.mark.skipif(assembler() is None, reason="no ptxas: nvidia-cuda-nvcc has it")


def layer(hidden: int, intermediate: int, heads: int, kv_heads: int, size: int) -> DecoderConfig:
    """A decoder of one layer with few tokens."""
    return DecoderConfig(
        vocab_size=512, hidden_size=hidden, intermediate_size=intermediate, num_layers=1,
        num_heads=heads, num_kv_heads=kv_heads, head_dim=size,
        ropes=(Rope(1e4, size),), norm_eps=1e-5, max_context=2048, tie_embeddings=True,
        bos_id=0, eos_ids=frozenset({1}),
    )  # fmt: skip


LAYERS = {
    "smollm2-135m": layer(576, 1536, 9, 3, 64),
    "llama-3-8b": layer(4096, 14336, 32, 8, 128),
}


@pytest.mark.rotate(6)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize("name", LAYERS)
def test_kernels_of_a_layer_spill_nothing(name: str, arch: str) -> None:
    with make_context(), ir.Location.unknown():
        module = outlined(export(Transformer(LAYERS[name])), f"native@cuda:{arch}", 2)
        texts = [
            (kernel.name, compile_ptx(kernel, Device.parse(f"cuda:{arch}")))
            for kernel in device_kernels(module.operation)
        ]
    assert len(texts) >= 10
    usages = {name: assemble(text, arch) for name, text in texts}
    assert {name: u for name, u in usages.items() if u.spilled_bytes} == {}
    assert max(u.registers for u in usages.values()) <= 128


def test_what_the_assembler_refuses() -> None:
    with pytest.raises(CompileError, match="ptxas refuses a kernel for sm_80"):
        assemble(".version 7.0\n.target sm_80\n.entry k() { frob; }", "sm_80")
