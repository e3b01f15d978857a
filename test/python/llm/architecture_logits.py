"""Writes `Inputs/architecture_logits.npz`: what `transformers` computes for every case.

    python test/python/llm/architecture_logits.py [CASE...]

Needs `transformers`, PyTorch and the extra `llm`; `test_architectures.py` compares with its output.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from architecture_cases import CASES, INPUTS, TOKENS, write


def logits_of(folder: Path) -> np.ndarray:
    """The logits after each of the tokens; all weights must be used."""
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
    )
    wrong = {kind: names for kind, names in loading.items() if names}
    if wrong:
        raise SystemExit(f"{folder.name}: {wrong}")
    with torch.no_grad():
        return model(torch.tensor(TOKENS)[None]).logits[0].numpy()


def main(names: list[str]) -> None:
    """Computes the cases, by default all; the others stay as they are."""
    path = INPUTS / "architecture_logits.npz"
    known = dict(np.load(path)) if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or CASES:
            known[name] = logits_of(write(Path(folder) / name, name))
            print(name, known[name].std())
    np.savez_compressed(path, **{name: known[name] for name in CASES if name in known})


main(sys.argv[1:])
