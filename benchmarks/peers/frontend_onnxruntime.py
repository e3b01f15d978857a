"""ONNX Runtime, its CPU provider: one session for all sizes of a file."""

from functools import cache

import frontend_cases
import onnxruntime
from worker import Prepared


class Models:
    """All optimisations; results are written to buffers that are bound once."""

    version = onnxruntime.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        session = self._loaded(str(frontend_cases.onnx_file(case)))
        given = frontend_cases.arguments(case)
        binding = session.io_binding()
        for name, array in given.items():
            binding.bind_cpu_input(name, array)
        outputs = [each.name for each in session.get_outputs()]
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(y) for y in session.run(None, given)]
        for name, value in zip(outputs, values, strict=True):
            binding.bind_ortvalue_output(name, value)

        def run() -> list:
            session.run_with_iobinding(binding)
            return values

        return Prepared(run, finish=lambda result: result.numpy(), retained=given)

    def _load(self, path: str) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
