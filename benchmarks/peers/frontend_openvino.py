"""OpenVINO, its CPU plugin: one compiled model for all sizes of a file."""

from functools import cache

import frontend_cases
import numpy as np
import openvino
from worker import Prepared


class Models:
    """One stream, f32; results are written to buffers that are set once."""

    version = openvino.__version__.partition("-")[0]

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._core = openvino.Core()
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        model = self._loaded(str(frontend_cases.onnx_file(case)))
        request = model.create_infer_request()
        given = frontend_cases.arguments(case)
        for name, array in given.items():
            request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        request.infer()
        out = np.empty_like(request.get_output_tensor(0).data)
        request.set_output_tensor(0, openvino.Tensor(out, shared_memory=True))

        def run() -> list:
            request.start_async()
            request.wait()
            return [out]

        return Prepared(run, retained=(request, given))

    def _load(self, path: str) -> openvino.CompiledModel:
        settings = {
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }
        return self._core.compile_model(self._core.read_model(path), "CPU", settings)
