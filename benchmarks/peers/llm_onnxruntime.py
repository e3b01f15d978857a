"""ONNX Runtime itself, on the model that `llm_genai.py` builds, with caches of a fixed size."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from peers.llm_decoder import CAPACITY, Decoder, Program


class OnnxRuntime(Decoder):
    """A session whose caches are written in place."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        file = work / f"genai-{weights}/model.onnx"
        self._session = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        for port in self._session.get_inputs():
            if port.name.startswith("past_key_values."):
                zeros = np.zeros((1, port.shape[1], CAPACITY, 64), np.float32)
                value = onnxruntime.OrtValue.ortvalue_from_numpy(zeros)
                self._binding.bind_ortvalue_input(port.name, value)
                present = port.name.replace("past_key_values", "present")
                self._binding.bind_ortvalue_output(present, value)
        self._binding.bind_output("logits")
        self._mask = np.ones((1, CAPACITY), np.int64)
        self._length = 0

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        self._length += len(tokens)
        self._binding.bind_cpu_input("input_ids", np.array([tokens], np.int64))
        self._binding.bind_cpu_input("attention_mask", self._mask[:, : self._length])
        self._session.run_with_iobinding(self._binding)

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        self._length = length

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._binding.get_outputs()[-1].numpy().reshape(-1)


class OnnxRuntimeProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(OnnxRuntime, onnxruntime.__version__, threads)
