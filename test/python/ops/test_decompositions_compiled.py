"""Every decomposition, compiled, against the interpreted operators that it is made of."""

from typing import Any

import pytest
import vulkan
from chromium import in_chromium, missing
from decomposed import Decomposition, module_of
from decomposition_cases import decompositions
from operator_cases import SIZES

import relax_mlir
from relax_mlir import decompositions as exported
from relax_mlir.bindings import ir
from relax_mlir.codegen import translating
from relax_mlir.dialects import make_context

# What is computed in one way for two types is sampled.
ALL = slice(None)
SAMPLES = {"bf16": slice(0, None, 2), "f64": slice(1, None, 2), "ui8": slice(0, None, 2)}

PARTS = 8
"""Of the cases of a type; each is compiled as one module."""


@pytest.mark.rotate(16)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "i32", "ui8"])
def test_decompositions(dtype: str, part: int) -> None:
    sampled = list(decompositions(dtype))[SAMPLES.get(dtype, ALL)]
    cases = {each.name: each for each in sampled[part::PARTS]}
    text = module_of({name: (each.build, each.specs) for name, each in cases.items()})
    _compare(cases, relax_mlir.compile(text), relax_mlir.interpret(text))


DEVICE_PARTS = 24
SLOW_IN_CHROMIUM = "non_max_suppression"
"""In names: SwiftShader compiles their products of f64, which are of words, for minutes."""


@pytest.mark.rotate(3 * DEVICE_PARTS)
@pytest.mark.parametrize("part", range(DEVICE_PARTS))
@pytest.mark.parametrize("target", ["vulkan", "wasm32", "webgpu"])
def test_decompositions_on_devices(target: str, part: int) -> None:
    """Where they run on one, of f32; in Chromium for WebGPU, in wasmtime for WebAssembly."""
    cases = {each.name: each for each in list(decompositions("f32"))[part::DEVICE_PARTS]}
    if target == "webgpu":
        cases = {name: each for name, each in cases.items() if SLOW_IN_CHROMIUM not in name}
    text = module_of({name: (each.build, each.specs) for name, each in cases.items()})
    _compare(cases, _on_device(text, target), relax_mlir.interpret(text))


def _on_device(text: str, target: str) -> Any:
    """A compiled module; skips the test if there is nothing that runs it."""
    if target == "webgpu":
        if why := missing():
            pytest.skip(why)
        with make_context(), ir.Location.unknown():
            return in_chromium(ir.Module.parse(text))
    if target == "vulkan":
        vulkan.require()
    with translating():
        return relax_mlir.compile(text, target=target)


def _compare(cases: dict[str, Decomposition], compiled: Any, meant: Any) -> None:
    """Compares what functions return at several sizes."""
    for name, each in cases.items():
        for sizes in SIZES:
            try:
                each.case.compare(compiled[name], meant[name], sizes)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


def test_every_decomposition_is_here() -> None:
    names = [each.name for each in decompositions("f32")]
    missing = [name for name in exported.__all__ if not any(n.startswith(name) for n in names)]
    assert missing == []
