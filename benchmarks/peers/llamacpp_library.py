"""The C interface of llama.cpp, in the library of the package `xllamacpp`.

Structures are those of `llama.h` at the version in `VERSION`: few of their fields are set, and they
are passed with room for more.
"""

import ctypes
import importlib.util
from importlib import metadata
from pathlib import Path

VERSION = "2026.10.11549"
# Fields of llama_context_params, in words.
N_CTX, N_BATCH, N_UBATCH, N_SEQ_MAX = 0, 1, 2, 3
FLASH_ATTENTION, TYPE_K, TYPE_V = 13, 26, 27
F32 = 0


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


def batch_of(lib: ctypes.CDLL, entries: list[tuple[int, int, int]]) -> Batch:
    """Tokens, each with its position and sequence, whose logits are all wanted; to be freed."""
    batch: Batch = lib.llama_batch_init(len(entries), 0, 1)
    batch.count = len(entries)
    for i, (token, position, sequence) in enumerate(entries):
        batch.token[i], batch.pos[i], batch.seq_counts[i] = token, position, 1
        batch.seq_ids[i][0], batch.logits[i] = sequence, 1
    return batch


def library() -> ctypes.CDLL:
    """The library, with the types of what is called; raises ImportError without this version."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        raise ImportError(f"needs the package xllamacpp=={VERSION}")
    if (version := metadata.version("xllamacpp")) != VERSION:
        raise ImportError(f"needs xllamacpp=={VERSION}, and {version} is installed")
    lib = ctypes.CDLL(str(next(Path(spec.origin).parent.glob("*.so"))))
    pointer = ctypes.c_void_p
    lib.llama_model_default_params.restype = Params
    lib.llama_context_default_params.restype = Params
    lib.llama_batch_init.restype = Batch
    lib.llama_batch_free.argtypes = [Batch]
    lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
    lib.llama_model_load_from_file.restype = pointer
    lib.llama_init_from_model.argtypes = [pointer, Params]
    lib.llama_init_from_model.restype = pointer
    lib.llama_set_n_threads.argtypes = [pointer, ctypes.c_int32, ctypes.c_int32]
    lib.llama_get_memory.argtypes = [pointer]
    lib.llama_get_memory.restype = pointer
    lib.llama_memory_seq_rm.argtypes = [pointer, *[ctypes.c_int32] * 3]
    lib.llama_decode.argtypes = [pointer, Batch]
    lib.llama_get_logits.argtypes = [pointer]
    lib.llama_get_logits.restype = ctypes.POINTER(ctypes.c_float)
    lib.llama_model_get_vocab.argtypes = [pointer]
    lib.llama_model_get_vocab.restype = pointer
    lib.llama_vocab_n_tokens.argtypes = [pointer]
    return lib
