"""llama.cpp's steps of generation for many sequences, as a program of `batches.py`."""

from importlib import metadata

import numpy as np
from peers.llamacpp_library import (
    F32,
    N_BATCH,
    N_CTX,
    N_SEQ_MAX,
    N_UBATCH,
    TYPE_K,
    TYPE_V,
    batch_of,
    library,
)
from worker import Prepared


class Steps:
    """Started by `worker.py`."""

    version = metadata.version("xllamacpp")

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lib = library()
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
        batch = batch_of(self._lib, entries)
        status = self._lib.llama_decode(handle, batch)
        self._lib.llama_batch_free(batch)
        if status:
            raise RuntimeError(f"llama.cpp fails to decode {len(entries)} tokens: {status}")
