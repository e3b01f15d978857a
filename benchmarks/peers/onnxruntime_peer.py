"""ONNX Runtime, its CPU provider; arguments and results are bound once."""

import cases
import numpy as np
import onnxruntime
from peers import onnx_models
from worker import Prepared


class Kernels:
    """Static shapes, weights as constants, all optimisations."""

    version = onnxruntime.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["dtype"] == "bf16":
            raise NotImplementedError("no bfloat16 on CPUs")
        model, arguments = onnx_models.model(case)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        for argument, array in zip(session.get_inputs(), arguments, strict=True):
            binding.bind_cpu_input(argument.name, array)
        result = session.get_outputs()[0]
        kind = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
        out = cases.empty(result.shape, kind[result.type])
        value = onnxruntime.OrtValue.ortvalue_from_numpy(out)
        binding.bind_ortvalue_output(result.name, value)

        def run() -> list:
            session.run_with_iobinding(binding)
            return [value]

        return Prepared(run, finish=lambda value: value.numpy(), retained=arguments)
