"""Every operator, compiled for each element type that it takes, against what it means.

The other tests here compare what operators mean, and the programs they become, with NumPy; this one
shows that code says the same, at sizes where vectors end. One module holds all cases of a type.
"""

import pytest
import vulkan
from chromium import in_chromium, missing
from cuda_driver import driver
from harness import FLOATS, INTEGERS, NUMPY, SMALL_FLOATS, UNSIGNED, add_function
from node import NODE, Node
from operator_cases import SIZES, Case, cases

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen import translating
from relax_mlir.compiler import compile_to_file
from relax_mlir.dialects import graph, make_context


def module_of(found: list[Case]) -> str:
    """The text of a module with a function for each case."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        for case in found:
            add_function(module, case.name, case.op, case.specs, [], case.attributes)
        return str(module)


# What is computed in one way for two types, or is not optimised, is sampled.
EVEN, ODD = slice(0, None, 2), slice(1, None, 2)
SAMPLES = {("f16", 2): EVEN, ("bf16", 2): ODD, ("i32", 2): EVEN, ("i64", 2): ODD, ("f32", 0): ODD}


@pytest.mark.rotate(6)
@pytest.mark.parametrize(
    ("dtype", "level"),
    [
        *((dtype, 2) for dtype in (*FLOATS, *INTEGERS, *UNSIGNED, *SMALL_FLOATS, "i1")),
        *(("f32", 0), ("ui8", 0), ("f8E5M2", 0)),
    ],
)
def test_operators(dtype: str, level: int) -> None:
    found = list(cases(dtype))[SAMPLES.get((dtype, level), slice(None))]
    text = module_of(found)
    compiled, meant = relax_mlir.compile(text, opt_level=level), relax_mlir.interpret(text)
    for case in found:
        for sizes in SIZES:
            case.compare(compiled[case.name], meant[case.name], sizes)


PARTS = 8
ON_WASM = (*FLOATS, *INTEGERS, *UNSIGNED, "i1", "f8E5M2", "f8E4M3FN")


@pytest.mark.rotate(len(ON_WASM) * PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ON_WASM)
def test_operators_on_wasm(dtype: str, part: int) -> None:
    """Whether they mean the same in an engine for WebAssembly; LLVM only translates them."""
    found = list(cases(dtype))[part::PARTS]
    text = module_of(found)
    with translating():
        compiled = relax_mlir.compile(text, target="wasm32")
    meant = relax_mlir.interpret(text)
    for case in found:
        for sizes in SIZES:
            case.compare(compiled[case.name], meant[case.name], sizes)


@pytest.mark.skipif(NODE is None, reason="needs node")
@pytest.mark.rotate(len(ON_WASM) * PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ON_WASM)
def test_operators_in_node(dtype: str, part: int) -> None:
    """The same in Node, by the loader in JavaScript."""
    found = list(cases(dtype))[part::PARTS]
    text = module_of(found)
    with translating():
        path = compile_to_file(text, "wasm32")
    meant, run = relax_mlir.interpret(text), Node(path, NUMPY)
    for case in found:
        for sizes in SIZES:
            case.compare(run[case.name], meant[case.name], sizes)
    run.close()


@pytest.mark.rotate(len(NUMPY) * PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", NUMPY)
def test_operators_on_cuda(dtype: str, part: int) -> None:
    """Whether they mean the same on a stand-in for NVIDIA's driver, which interprets PTX."""
    driver().library.standin_reset()  # whatever failed before
    found = list(cases(dtype))[part::PARTS]
    text = module_of(found)
    with translating():
        compiled = relax_mlir.compile(text, target="cuda:sm_80")
    meant = relax_mlir.interpret(text)
    for case in found:
        for sizes in SIZES:
            case.compare(compiled[case.name], meant[case.name], sizes)


@pytest.mark.rotate(len(NUMPY) * PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", NUMPY)
def test_operators_of_constant_sizes_on_cuda(dtype: str, part: int) -> None:
    """The same where sizes are constants, for which kernels have indices of 32 bits."""
    driver().library.standin_reset()  # whatever failed before
    sizes = SIZES[-1]
    found = [case.of_constants(sizes) for case in list(cases(dtype))[part::PARTS]]
    text = module_of(found)
    with translating():
        compiled = relax_mlir.compile(text, target="cuda:sm_80")
    meant = relax_mlir.interpret(text)
    for case in found:
        case.compare(compiled[case.name], meant[case.name], sizes)


@pytest.mark.rotate(len(ON_WASM) * PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ON_WASM)
def test_operators_on_vulkan(dtype: str, part: int) -> None:
    """Whether they mean the same on a device, for which memory and kernels are compiled."""
    vulkan.require()
    found = list(cases(dtype))[part::PARTS]
    text = module_of(found)
    compiled, meant = relax_mlir.compile(text, "vulkan"), relax_mlir.interpret(text)
    for case in found:
        for sizes in SIZES:
            case.compare(compiled[case.name], meant[case.name], sizes)


ON_WEBGPU = tuple(dtype for dtype in ON_WASM if dtype != "f64")


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
@pytest.mark.rotate(len(ON_WEBGPU) * PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ON_WEBGPU)
def test_operators_on_webgpu(dtype: str, part: int) -> None:
    """Whether kernels mean the same on a device of WebGPU, in Chromium; it has no f64."""
    found = [case for case in cases(dtype) if "f64" not in case.name][part::PARTS]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_of(found))
        meant, run = relax_mlir.interpret(module), in_chromium(module)
    for case in found:
        for sizes in SIZES:
            case.compare(run[case.name], meant[case.name], sizes)


def test_every_operator_is_here() -> None:
    tested = {
        case.op.OPERATION_NAME for dtype in (*FLOATS, *INTEGERS, "i1") for case in cases(dtype)
    }
    declared = {
        kind.OPERATION_NAME
        for kind in vars(graph).values()
        if isinstance(kind, type)
        and issubclass(kind, graph.GraphOp)
        and "OPERATION_NAME" in vars(kind)
        and kind.has_rule()
        and not issubclass(kind, graph.DataDependentOp)  # these are expanded
    }
    of_shapes = {"graph.make_shape", "graph.shape_of", "graph.tensor_to_shape"}
    of_devices = {"graph.to_device", "graph.hint_on_device"}
    assert declared - of_shapes - of_devices == tested
