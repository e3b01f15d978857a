"""Logits of llama.cpp, through the C interface in the library of the package `xllamacpp`.

python test/python/llm/llamacpp.py FILE.gguf LOGITS.npy TOKEN,... [CONTEXT]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from peers.llamacpp_library import (
    F32,
    FLASH_ATTENTION,
    N_BATCH,
    N_CTX,
    N_UBATCH,
    TYPE_K,
    TYPE_V,
    batch_of,
    library,
)


def logits(path: Path, tokens: list[int], context: int = 64) -> np.ndarray:
    """The logits after each of the tokens, float32[tokens, vocabulary], with float32 caches."""
    lib = library()
    params = lib.llama_model_default_params()
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    if not model:
        raise SystemExit(f"{path}: llama.cpp cannot load it")
    settings = lib.llama_context_default_params()
    for field, value in ((N_CTX, context), (N_BATCH, 512), (N_UBATCH, 512)):
        settings.words[field] = value
    settings.words[FLASH_ATTENTION] = 0
    settings.words[TYPE_K] = settings.words[TYPE_V] = F32
    handle = lib.llama_init_from_model(model, settings)
    batch = batch_of(lib, [(token, i, 0) for i, token in enumerate(tokens)])
    if lib.llama_decode(handle, batch):
        raise SystemExit(f"{path}: llama.cpp fails")
    size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    return np.ctypeslib.as_array(lib.llama_get_logits(handle), (len(tokens), size)).copy()


if __name__ == "__main__":
    file, out, text, *rest = sys.argv[1:]
    np.save(out, logits(Path(file), [int(t) for t in text.split(",")], *map(int, rest)))
