"""Logits of llama.cpp, through the C interface in the library of the package `xllamacpp`.

    python test/python/llm/llamacpp.py FILE.gguf LOGITS.npy TOKEN,... [CONTEXT]

Structures are those of `llama.h` at the version in `VERSION`; of their fields only a few are set,
and they are passed with room for more.
"""

import ctypes
import importlib.util
import sys
from pathlib import Path

import numpy as np

VERSION = "2026.10.11549"
N_CTX, N_BATCH, N_UBATCH, FLASH_ATTENTION, TYPE_K, TYPE_V = 0, 1, 2, 13, 26, 27
NO_REPACKING = 72 + 5  # use_extra_bufts, in bytes


class Params(ctypes.Structure):
    """A structure that is passed by value on the stack."""

    _fields_ = [("words", ctypes.c_uint32 * 128)]


class Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_ = [
        ("count", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("seq_counts", ctypes.POINTER(ctypes.c_int32)),
        ("seq_ids", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
        ("more", ctypes.c_uint64 * 8),
    ]


def library() -> ctypes.CDLL:
    """The library, with the types of what is called."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        raise SystemExit(f"needs the package xllamacpp=={VERSION}")
    lib = ctypes.CDLL(str(next(Path(spec.origin).parent.glob("*.so"))))
    lib.llama_model_default_params.restype = Params
    lib.llama_context_default_params.restype = Params
    lib.llama_batch_init.restype = Batch
    lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
    lib.llama_model_load_from_file.restype = ctypes.c_void_p
    lib.llama_init_from_model.argtypes = [ctypes.c_void_p, Params]
    lib.llama_init_from_model.restype = ctypes.c_void_p
    lib.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    lib.llama_get_logits.argtypes = [ctypes.c_void_p]
    lib.llama_get_logits.restype = ctypes.POINTER(ctypes.c_float)
    lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
    lib.llama_model_get_vocab.restype = ctypes.c_void_p
    lib.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
    return lib


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
    settings.words[FLASH_ATTENTION] = settings.words[TYPE_K] = settings.words[TYPE_V] = 0
    handle = lib.llama_init_from_model(model, settings)
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.count = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.seq_counts[i] = token, i, 1
        batch.seq_ids[i][0], batch.logits[i] = 0, 1
    if lib.llama_decode(handle, batch):
        raise SystemExit(f"{path}: llama.cpp fails")
    size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    return np.ctypeslib.as_array(lib.llama_get_logits(handle), (len(tokens), size)).copy()


if __name__ == "__main__":
    file, out, text, *rest = sys.argv[1:]
    np.save(out, logits(Path(file), [int(t) for t in text.split(",")], *map(int, rest)))
