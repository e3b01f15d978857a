"""Writes `Inputs/encoder_vectors.npz`: vectors by `transformers`, of one sequence at a time.

    python test/python/llm/encoder_vectors.py

Needs `transformers`, PyTorch and the extra `llm`; `test_encoders.py` compares with its output.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from encoder_cases import CASES, INPUTS, SEQUENCES, TEXTS, finished, write

from relax_mlir.llm.checkpoints.packaged import resolve


def hidden_of(folder: Path, sequences: list[list[int]]) -> list[np.ndarray]:
    """The results of the layers for each sequence; all weights but a pooler's must be there."""
    model, loading = transformers.AutoModel.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
    )
    wrong = {k: [n for n in names if "pooler" not in n] for k, names in loading.items() if names}
    if any(wrong.values()):
        raise SystemExit(f"{folder.name}: {wrong}")
    model.eval()
    with torch.no_grad():
        return [model(torch.tensor([ids])).last_hidden_state[0].numpy() for ids in sequences]


def main() -> None:
    """Computes all cases."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in CASES:
            folder = write(Path(scratch) / name, name)
            hidden = hidden_of(folder, SEQUENCES)
            found[name] = np.stack([finished(folder, name, x) for x in hidden])
            print(name, found[name].std())
    folder = resolve("minilm")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    hidden = hidden_of(folder, [tokenizer(text)["input_ids"] for text in TEXTS])
    means = np.stack([x.astype(np.float64).mean(0) for x in hidden])
    found["minilm"] = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.savez_compressed(INPUTS / "encoder_vectors.npz", **found)


main()
