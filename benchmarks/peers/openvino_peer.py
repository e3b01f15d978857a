"""OpenVINO, its CPU plugin; arguments and results are bound once."""

import cases
import openvino
from peers import onnx_models
from worker import Prepared


class Kernels:
    """Static shapes, weights as constants, one stream, in the case's precision."""

    version = openvino.__version__.partition("-")[0]

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._core = openvino.Core()

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["dtype"] == "int8":
            raise NotImplementedError("int8 needs a model that was quantised by its tools")
        proto, arguments = onnx_models.model(case)
        model = self._core.read_model(proto.SerializeToString())
        precision = "bf16" if case["dtype"] == "bf16" else "f32"
        settings = {
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": "LATENCY",
        }
        request = self._core.compile_model(model, "CPU", settings).create_infer_request()
        for index, array in enumerate(arguments):
            request.set_input_tensor(index, openvino.Tensor(array, shared_memory=True))
        result = request.model_outputs[0]
        out = cases.empty(tuple(result.get_shape()), result.get_element_type().to_dtype())
        request.set_output_tensor(0, openvino.Tensor(out, shared_memory=True))

        def run() -> list:
            request.start_async()
            request.wait()
            return [out]

        return Prepared(run, retained=arguments)
