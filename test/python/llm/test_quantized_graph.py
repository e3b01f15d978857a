"""The pass that quantises any graph, on the graph of a language model."""

from pathlib import Path

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_hf

from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.llm import load
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.generation import model
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.passes import Pipeline
from relax_mlir.transforms import quantize

pytestmark = pytest.mark.usefixtures("llvm_turns")

TOKENS = np.random.default_rng(0).integers(0, CONFIG.vocab_size, 13, dtype=np.int32)


def test_names_are_those_of_the_pass() -> None:
    assert model.SCHEMES.items() <= quantize.NAMES.items()


@pytest.mark.rotate(3)
@pytest.mark.parametrize("activations", ["f32", "int8"])
@pytest.mark.parametrize("scheme", model.SCHEMES)
def test_same_as_weights_that_are_rounded_when_loaded(
    tmp_path: Path, scheme: str, activations: str
) -> None:
    folder = write_hf(tmp_path / "tiny", random_weights())
    graph = Transformer(CONFIG)
    source = open_checkpoint(str(folder)).weights
    floats = [
        np.concatenate([source.load_f32(name) for name in parameter.sources])
        for parameter in graph.parameters()
    ]
    with make_context(), ir.Location.unknown():
        module = parse_module(export(graph))
        options = f"scheme={scheme} activations={activations}"
        Pipeline.parse(f"builtin.module(relax-quantize{{{options}}})").run(module, verify=True)
        executable = compile(module)
    given = executable["main_quantize"](*floats)
    dims = (CONFIG.num_kv_heads, 16, CONFIG.head_dim)
    caches = [np.zeros(dims, np.float32) for _ in range(2 * CONFIG.num_layers)]
    lengths = np.array([0, len(TOKENS)], np.int64)
    logits, *_ = executable["main"](TOKENS, lengths, *caches, *given)
    rounded = load(str(folder), weights=scheme, activations=activations, cache="f32")
    kept = sum(array.nbytes for array in rounded.parameters)
    assert sum(array.nbytes for array in given) == kept
    np.testing.assert_allclose(logits, rounded.logits(TOKENS), rtol=1e-4, atol=1e-4)
