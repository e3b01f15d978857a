"""Writes `Inputs/gguf_digests.json`: the GGUF files whose logits llama.cpp agrees on.

    python test/python/llm/gguf_digests.py [CASE...]

Needs the package that `llamacpp.py` names. Each case is converted, and llama.cpp's logits are
compared with those of `transformers`, for as many tokens as the file has context.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from architecture_cases import CASES, INPUTS, TOKENS, UNSTATED, expected, write

from relax_mlir.llm.checkpoints.convert import convert
from relax_mlir.llm.formats.gguf_file import GgufFile

DIGESTS = INPUTS / "gguf_digests.json"
TOLERANCE = 1e-3
"""Of the logits' spread: llama.cpp's GELU is a table of float16."""
DIFFERS = {
    "phi3": "llama.cpp ignores its window",
    "phi3-longrope": "llama.cpp takes long factors by its context, which is a multiple of 256",
    "olmoe": "llama.cpp reads norms of keys for all heads only",
}
"""Files of our reading alone."""


def digest(path: Path) -> str:
    """Of keys, names, shapes and values; what `pow` and `exp` made is rounded: they may differ."""
    file = GgufFile.open(path)
    found = hashlib.sha256()
    for key, value in sorted(file.metadata.items()):
        if not key.startswith(("tokenizer.", "general.")):
            text = f"{value:.5g}" if isinstance(value, float) else str(value)
            found.update(f"{key} {text}\n".encode())
    for name, tensor in sorted(file.tensors.items()):
        values = file.raw(name).to_f32()
        is_computed = "rope" in name or name.endswith(".ssm_a")
        data = str(np.round(values, 4).tolist()).encode() if is_computed else values.tobytes()
        found.update(f"{name} {tensor.shape}\n".encode() + data)
    return found.hexdigest()[:16]


def known() -> dict[str, str]:
    """The digests that llama.cpp confirmed, by case."""
    return dict(json.loads(DIGESTS.read_text()))


def difference(path: Path, name: str) -> float:
    """How far llama.cpp's logits are from those of `transformers`, as a share of the spread."""
    tokens = TOKENS[: context_of(path)]
    out = path.with_suffix(".npy")
    program = str(Path(__file__).parent / "llamacpp.py")
    text = ",".join(map(str, tokens))
    command = [sys.executable, program, str(path), str(out), text]
    subprocess.run(command, check=True, capture_output=True)
    wanted = expected()[name][: len(tokens)]
    return float(np.abs(np.load(out) - wanted).max() / np.ptp(wanted))


def context_of(path: Path) -> int:
    """The tokens that a file has context for."""
    metadata = GgufFile.open(path).metadata
    return int(metadata[f"{metadata['general.architecture']}.context_length"])


def main(names: list[str]) -> None:
    """Confirms the cases, by default all; the others stay as they are."""
    found = known() if DIGESTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or CASES:
            is_stated = UNSTATED.get(name, "max_context") == "max_context"
            if not is_stated or name in DIFFERS:
                continue
            file = Path(folder) / f"{name}.gguf"
            convert(str(write(Path(folder) / name, name)), file, "f32")
            error = difference(file, name)
            print(f"{name} {error:.1e}")
            if error > TOLERANCE:
                raise SystemExit(f"{name}: llama.cpp computes something else")
            found[name] = digest(file)
    DIGESTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
