"""ONNX Runtime, its CPU provider: one session for all sizes of a model."""

from functools import cache

import model_cases
import numpy as np
import onnxruntime
from peers import model_onnx
from worker import Prepared


class Models:
    """Symbolic dims, weights as constants, all optimisations."""

    version = onnxruntime.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["dtype"] == "bf16":
            raise NotImplementedError("no bfloat16 on CPUs")
        session = self._loaded(tuple(item for item in case.items() if item[0] != "sizes"))
        given = model_cases.arguments(case)
        binding = session.io_binding()
        for name, array in given.items():
            binding.bind_cpu_input(name, array)
        name = session.get_outputs()[0].name
        (first,) = session.run([name], given)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(first))
        binding.bind_ortvalue_output(name, value)

        def run() -> list:
            session.run_with_iobinding(binding)
            return [value]

        return Prepared(run, finish=lambda result: result.numpy(), retained=given)

    def _load(self, items: tuple) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        text = model_onnx.export(dict(items)).SerializeToString()
        return onnxruntime.InferenceSession(text, options, ["CPUExecutionProvider"])
