"""This compiler: models of ONNX files and of exported programs, each compiled for all sizes."""

from functools import cache
from typing import Any

import frontend_cases
import numpy as np
from worker import Prepared

import relax_mlir


class FromOnnx:
    """The file, imported; names of its dims are symbols."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        items = tuple((name, case[name]) for name in ("model", "dtype"))
        main, names = self._loaded(items, tuple(case["sizes"]))
        arrays = frontend_cases.arguments(case)
        given = [arrays[name] for name in names]
        first = main(*given)
        results = first if isinstance(first, tuple) else (first,)
        call = main.bind(*given, results=[np.empty_like(each) for each in results])

        def run() -> list:
            out = call.run()
            return list(out) if isinstance(out, tuple) else [out]

        return Prepared(run)

    def _load(self, items: tuple, sizes: tuple) -> tuple[Any, tuple[str, ...]]:
        imported = self._imported({**dict(items), "sizes": dict.fromkeys(sizes, 4)})
        executable = relax_mlir.compile(imported, opt_level=3)
        executable.threads = self._threads
        return executable["main"], imported.inputs

    def _imported(self, case: dict) -> Any:
        from relax_mlir.frontends.onnx import from_onnx

        return from_onnx(frontend_cases.onnx_file(case))


class FromTorch(FromOnnx):
    """The module, exported by `torch.export`; the same axes are dynamic."""

    def _imported(self, case: dict) -> Any:
        import torch

        from relax_mlir.frontends.torch import from_exported_program

        dims = {axis: torch.export.Dim.AUTO for axis in frontend_cases.dynamic_axes(case)}
        given = (torch.from_numpy(frontend_cases.arguments(case)["x"]),)
        module = frontend_cases.module(case["model"])
        return from_exported_program(torch.export.export(module, given, dynamic_shapes=(dims,)))
