"""SmolLM2 on emulated CPUs: the tokens that Hugging Face transformers generates."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "cpus"))

from cpu_modules import LONG, run

from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.building import build, decoder_file
from relax_mlir.llm.decoder.decoder import Settings

PLAIN = 2
"""The level up to which weights have one layout for all CPUs."""
ROOM, STEPS = 48, 3


@pytest.mark.sweep
@pytest.mark.parametrize(
    "target", ["aarch64", "aarch64-v8.2", "aarch64-v8.6", "riscv64", "riscv64-v", *LONG]
)
def test_a_greedy_answer(target: str, smollm2: Checkpoint, golden: dict[str, np.ndarray]) -> None:
    """The whole prompt in one call, then some tokens; it takes some minutes."""
    weights = build(smollm2, Settings("f32", "f32", "native", PLAIN), 1, None).parameters
    path, described = decoder_file(smollm2, Settings("f32", "f32", target, PLAIN))
    assert [each.shape for each in weights] == [each.dims for each in described]
    compiled = run(path, target, by_qemu=True)
    main = compiled["main"]
    caches = [
        np.zeros([dim if isinstance(dim, int) else ROOM for dim in argument["dims"]], np.float32)
        for argument in compiled.metadata["functions"]["main"]["arguments"]
        if argument["inout"]
    ]
    prompt, expected = np.split(golden["greedy32"], [len(golden["chat_tokens"])])
    tokens: list[int] = []
    new, length = prompt, 0
    while len(tokens) < STEPS:
        logits = main(new, np.array([length, 1]), *caches, *weights)[0]
        if not tokens:
            last = logits[-1, golden["chat_last_ids"]]
            np.testing.assert_allclose(last, golden["chat_last"], rtol=0, atol=1e-3)
        tokens.append(int(logits[-1].argmax()))
        new, length = np.array(tokens[-1:], np.int32), length + len(new)
    assert tokens == expected[:STEPS].tolist()
