"""OpenVINO, its CPU plugin: one compiled model for all sizes of a file."""

from functools import cache

import frontend_cases
import openvino
from peers.openvino_requests import compiled, prepared
from worker import Prepared


class Models:
    """One stream, f32."""

    version = openvino.__version__.partition("-")[0]

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._core = openvino.Core()
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        model = self._loaded(str(frontend_cases.onnx_file(case)))
        return prepared(model, frontend_cases.arguments(case))

    def _load(self, path: str) -> openvino.CompiledModel:
        return compiled(self._core, self._core.read_model(path), self._threads, "f32")
