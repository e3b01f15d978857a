"""llama.cpp's steps of generation for many sequences, as a program of `batches.py`.

Calls the C interface in the library of the package `xllamacpp`. Structures are those of `llama.h`
at the version in `VERSION`: few of their fields are set, and they are passed with room for more.
"""

import ctypes
from importlib import metadata
from pathlib import Path

import numpy as np
import xllamacpp
from worker import Prepared

VERSION = "2026.10.11549"
# Fields of llama_context_params, in words.
N_CTX, N_BATCH, N_UBATCH, N_SEQ_MAX, TYPE_K, TYPE_V = 0, 1, 2, 3, 26, 27
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


class Steps:
    """Started by `worker.py`."""

    version = metadata.version("xllamacpp")

    def __init__(self, threads: int) -> None:
        if self.version != VERSION:
            raise ImportError(f"needs xllamacpp=={VERSION}, and {self.version} is installed")
        self._threads = threads
        self._lib = _library()
        self._models: dict[str, int] = {}

    def prepare(self, case: dict) -> Prepared:
        """A token of each sequence after `context` others; gives float32[sequences, vocabulary]."""
        lib, tokens, context = self._lib, case["tokens"], case["context"]
        model = self._model(case["file"])
        handle = self._context(model, len(tokens), context + 64, case["weights"])
        memory = lib.llama_get_memory(handle)
        for i, row in enumerate(tokens):
            self._decode(handle, [(token, at, i) for at, token in enumerate(row[:-1])])
        step = [(row[-1], context, i) for i, row in enumerate(tokens)]
        size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))

        def reset() -> None:
            for i in range(len(tokens)):
                lib.llama_memory_seq_rm(memory, i, context, -1)

        def run() -> list[np.ndarray]:
            self._decode(handle, step)
            return [np.ctypeslib.as_array(lib.llama_get_logits(handle), (len(step), size))]

        return Prepared(run, reset, finish=np.copy)

    def _model(self, file: str) -> int:
        if file not in self._models:
            self._models.clear()
            params = self._lib.llama_model_default_params()
            model = self._lib.llama_model_load_from_file(file.encode(), params)
            if not model:
                raise RuntimeError(f"{file}: llama.cpp cannot load it")
            self._models[file] = model
        return self._models[file]

    def _context(self, model: int, sequences: int, length: int, weights: str) -> int:
        settings = self._lib.llama_context_default_params()
        length = -(-length // 256) * 256  # it rounds up itself
        fields = {N_CTX: sequences * length, N_BATCH: 512, N_UBATCH: 512, N_SEQ_MAX: sequences}
        for field, value in fields.items():
            settings.words[field] = value
        if weights == "f32":
            settings.words[TYPE_K] = settings.words[TYPE_V] = F32
        handle = self._lib.llama_init_from_model(model, settings)
        if not handle:
            raise RuntimeError(f"llama.cpp makes no context of {sequences} sequences")
        self._lib.llama_set_n_threads(handle, self._threads, self._threads)
        return handle

    def _decode(self, handle: int, entries: list[tuple[int, int, int]]) -> None:
        """Runs tokens, each with its position and sequence; the logits of all are there."""
        batch = self._lib.llama_batch_init(len(entries), 0, 1)
        batch.count = len(entries)
        for i, (token, position, sequence) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.seq_counts[i] = token, position, 1
            batch.seq_ids[i][0], batch.logits[i] = sequence, 1
        status = self._lib.llama_decode(handle, batch)
        self._lib.llama_batch_free(batch)
        if status:
            raise RuntimeError(f"llama.cpp fails to decode {len(entries)} tokens: {status}")


def _library() -> ctypes.CDLL:
    """The library, with the types of what is called."""
    assert xllamacpp.__file__
    lib = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("*.so"))))
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
