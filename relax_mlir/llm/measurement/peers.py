"""Other programs that run language models, for comparison.

llama.cpp is called through the plain C interface of llama-cpp-python, so that its measured loops
run no more Python than ours.
"""

import ctypes
from collections.abc import Sequence

import llama_cpp
import numpy as np

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.checkpoints.convert import converted_file
from relax_mlir.llm.checkpoints.packaged import resolve
from relax_mlir.llm.measurement.benchmark import Case


class LlamaCpp:
    """llama.cpp on a GGUF file, with float32 caches if the weights are float32 too."""

    name = "llama.cpp"
    version = llama_cpp.__version__

    def __init__(self, model: str, capacity: int, weights: str, map_file: bool = True) -> None:
        """Loads `model` for sequences of up to `capacity` tokens; `weights` as for `llm.load`.

        With `map_file`, llama.cpp's default, weights stay on the small pages of the file.

        Raises UsageError if it is not a GGUF file, ModelError if llama.cpp refuses it.
        """
        path = resolve(model)
        if path.is_dir():
            raise UsageError(f"'{model}' is a folder; llama.cpp is measured on GGUF files")
        llama_cpp.llama_log_set(_QUIET, None)
        options = llama_cpp.llama_model_default_params()
        options.use_mmap = map_file
        file = path if weights == "native" else converted_file(path, weights)
        self._model = llama_cpp.llama_model_load_from_file(bytes(file), options)
        if not self._model:
            raise ModelError(f"{path}: llama.cpp cannot load it")
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch = capacity, capacity
        if weights == "f32":
            settings.type_k = settings.type_v = llama_cpp.GGML_TYPE_F32
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        self._memory = llama_cpp.llama_get_memory(self._context)
        vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._vocab_size = llama_cpp.llama_vocab_n_tokens(vocab)
        self._tokens = np.random.default_rng(0).integers(0, self._vocab_size, capacity).tolist()
        self._length = 0

    def set_threads(self, threads: int) -> None:
        """Sets the thread count of later calls."""
        llama_cpp.llama_set_n_threads(self._context, threads, threads)

    def append(self, tokens: Sequence[int]) -> None:
        """Runs the model over new tokens; raises ModelError if it fails to."""
        count = len(tokens)
        ids = (ctypes.c_int32 * count)(*tokens)
        status = llama_cpp.llama_decode(self._context, llama_cpp.llama_batch_get_one(ids, count))
        # Waits until the logits are ready.
        if status or not llama_cpp.llama_get_logits_ith(self._context, -1):
            raise ModelError(f"llama.cpp fails to decode {count} tokens: status {status}")
        self._length += count

    def truncate(self, length: int) -> None:
        """Removes all tokens but the first `length`."""
        llama_cpp.llama_memory_seq_rm(self._memory, 0, length, -1)
        self._length = length

    def logits(self) -> np.ndarray:
        """The logits after the last token, in llama.cpp's memory: float32[vocabulary]."""
        row = llama_cpp.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(row, (self._vocab_size,))

    def all_logits(self, tokens: Sequence[int]) -> np.ndarray:
        """The logits after each of `tokens`, in empty caches: float32[len(tokens), vocabulary].

        Raises ModelError if llama.cpp fails.
        """
        self.truncate(0)
        batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
        try:
            batch.n_tokens = len(tokens)
            for index, token in enumerate(tokens):
                batch.token[index], batch.pos[index], batch.logits[index] = token, index, True
                batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
            status = llama_cpp.llama_decode(self._context, batch)
        finally:
            llama_cpp.llama_batch_free(batch)
        if status:
            raise ModelError(f"llama.cpp fails to decode {len(tokens)} tokens: status {status}")
        logits = llama_cpp.llama_get_logits(self._context)
        return np.ctypeslib.as_array(logits, (len(tokens), self._vocab_size)).copy()

    def prepare(self, case: Case) -> None:
        """See `Contender`."""
        self.set_threads(case.threads)
        if self._length < case.context:
            self.truncate(0)
            self.append(self._tokens[: case.context])
        self.truncate(case.context)

    def run(self, case: Case) -> None:
        """See `Contender`."""
        if case.prompt:
            self.append(self._tokens[: case.prompt])
        for token in self._tokens[: case.generated]:
            self.append([token])


@llama_cpp.llama_log_callback
def _QUIET(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    """Discards llama.cpp's log output."""
