"""Requests of OpenVINO on the CPU whose inputs and output are memory that is set once."""

from collections.abc import Mapping

import numpy as np
import openvino
from worker import Prepared


def compiled(
    core: openvino.Core, model: openvino.Model, threads: int, precision: str
) -> openvino.CompiledModel:
    """A model on one stream, which computes in `precision`: f32, f16 or bf16."""
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": precision,
        "PERFORMANCE_HINT": "LATENCY",
    }
    return core.compile_model(model, "CPU", settings)


def prepared(model: openvino.CompiledModel, given: Mapping[str, np.ndarray]) -> Prepared:
    """A call with inputs by name, which returns the first output."""
    request = model.create_infer_request()
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
