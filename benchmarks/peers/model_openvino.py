"""OpenVINO, its CPU plugin: one compiled model for all sizes."""

from functools import cache

import model_cases
import openvino
from peers import model_onnx
from peers.openvino_requests import compiled, prepared
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
        return prepared(model, model_cases.arguments(case))

    def _load(self, items: tuple) -> openvino.CompiledModel:
        case = dict(items)
        model = self._core.read_model(model_onnx.export(case).SerializeToString())
        return compiled(self._core, model, self._threads, case["dtype"])
