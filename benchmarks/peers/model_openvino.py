"""OpenVINO, its CPU plugin: one compiled model for all sizes."""

from functools import cache

import model_cases
import numpy as np
import openvino
from peers import model_onnx
from worker import Prepared


class Models:
    """Symbolic dims, weights as constants, one stream, in the case's precision."""

    version = openvino.__version__.partition("-")[0]

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._core = openvino.Core()
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        model = self._loaded(tuple(item for item in case.items() if item[0] != "sizes"))
        request = model.create_infer_request()
        given = model_cases.arguments(case)
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

    def _load(self, items: tuple) -> openvino.CompiledModel:
        case = dict(items)
        settings = {
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": case["dtype"],
            "PERFORMANCE_HINT": "LATENCY",
        }
        model = self._core.read_model(model_onnx.export(case).SerializeToString())
        return self._core.compile_model(model, "CPU", settings)
