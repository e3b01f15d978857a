"""Damaged models are imported or refused: nothing crashes, takes long, or takes much memory."""

import contextlib
import resource
import time

import numpy as np
import pytest
from damage import any_of, bytes_of, changed
from node_suite import cases
from onnx import helper
from onnx_nodes import BOOL, FLOAT, INT64, graph, model, node
from samples import samples

from relax_mlir.errors import ModelError
from relax_mlir.frontends.onnx import from_onnx, importer

SECONDS, GIBIBYTE = 10, 1 << 30


@contextlib.contextmanager
def limited(size):
    """Memory beyond `size` more than there is now raises MemoryError."""
    pages = int(open("/proc/self/statm").read().split()[0])
    old = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)


def outcomes(protos, damage, count):
    """Whether damaged models are imported or refused, which is all that they may be."""
    first, seen = int(np.random.default_rng().integers(1 << 32)), set()
    with limited(GIBIBYTE):
        for seed in range(first, first + count):
            rng = np.random.default_rng(seed)
            damaged, start = damage(any_of(protos, rng), rng), time.process_time()
            try:
                from_onnx(damaged)
                seen.add("imported")
            except ModelError:
                seen.add("refused")
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}") from error
            assert time.process_time() - start < SECONDS, f"seed {seed}"
    return seen


def test_undamaged_models():
    for proto in samples():
        from_onnx(proto)


@pytest.mark.parametrize("damage", [bytes_of, changed])
def test_damaged_models(damage):
    assert outcomes(samples(), damage, 200) == {"imported", "refused"}


@pytest.mark.sweep
@pytest.mark.parametrize("damage", [bytes_of, changed])
def test_many_damaged_models(damage):
    assert outcomes(samples(), damage, 10_000) == {"imported", "refused"}


@pytest.mark.sweep
@pytest.mark.parametrize("damage", [bytes_of, changed])
@pytest.mark.parametrize("expanded", [False, True])
def test_many_damaged_node_tests(damage, expanded):
    protos = [case.model for case in cases(expanded=expanded)]
    assert outcomes(protos, damage, 10_000) == {"imported", "refused"}


def refused_soon(proto, match):
    start = time.process_time()
    with limited(GIBIBYTE), pytest.raises(ModelError, match=match):
        from_onnx(proto)
    assert time.process_time() - start < 3 * SECONDS


def calls(name, operand, result):
    return helper.make_node(name, [operand], [result], domain="local")


def with_functions(count, body):
    """A model that calls the last of `count` functions; `body` gives the nodes of one."""
    made = model([calls(f"f{count - 1}", "x", "y")], {"x": [3]}, ["y"])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    made.opset_import.append(opsets[1])
    for i in range(count):
        made.functions.append(helper.make_function("local", f"f{i}", ["a"], ["b"], body(i), opsets))
    return made


def test_functions_that_double_again_and_again(monkeypatch):
    monkeypatch.setattr(importer, "MORE", 1000)
    proto = with_functions(
        40,
        lambda i: (
            [calls(f"f{i - 1}", "a", "t"), calls(f"f{i - 1}", "t", "b")]
            if i
            else [node("Relu", "a", "b")]
        ),
    )
    refused_soon(proto, "is one of over 2600 nodes, with those of calls and loops")


def test_functions_that_call_themselves():
    refused_soon(with_functions(1, lambda i: [calls("f0", "a", "b")]), "'f0' from within itself")


def test_loops_in_one_another(monkeypatch):
    monkeypatch.setattr(importer, "MORE", 1000)
    nodes = [node("Relu", "x", "y0")]
    for i in range(30):
        ends = [node("Identity", "go", f"goes{i}")]
        inputs = {f"at{i}": (INT64, []), "go": (BOOL, []), f"v{i}": (FLOAT, [3])}
        body = graph([*nodes, *ends], inputs, [f"goes{i}", f"y{i}"])
        nodes = [node("Loop", "n c x", f"y{i + 1}", body=body)]
    inputs = {"x": [3], "c": [], "n": []}
    proto = model(nodes, inputs, ["y30"], kinds={"c": BOOL, "n": INT64})
    refused_soon(proto, "nodes, with those of calls and loops")


def test_sequences_of_sequences():
    nodes = [node("SequenceConstruct", "x x", "s0")]
    nodes += [node("SequenceConstruct", f"s{i} s{i}", f"s{i + 1}") for i in range(40)]
    refused_soon(model(nodes, {"x": [3]}, ["s40"]), "makes a sequence of what is no tensor")


def test_dims_that_double_again_and_again():
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s first", "a0"),
        node("Gather", "s last", "b0"),
    ]
    for i in range(40):
        nodes += [node("Max", f"a{i} b{i}", f"c{i}"), node("Min", f"a{i} b{i}", f"d{i}")]
        nodes += [node("Mul", f"c{i} a{i}", f"a{i + 1}"), node("Add", f"d{i} b{i}", f"b{i + 1}")]
    nodes.append(node("ConstantOfShape", "a40", "y"))
    proto = model(nodes, {"x": ["n", "m"]}, ["y"], {"first": np.array([0]), "last": np.array([1])})
    start = time.process_time()
    from_onnx(proto)
    assert time.process_time() - start < SECONDS


def test_counts_without_bounds():
    proto = model(
        [node("Split", "x s", "y z")], {"x": [4], "s": [1 << 31]}, ["y"], kinds={"s": INT64}
    )
    refused_soon(proto, "expects at most 4096 elements")
    sizes = {"bins": np.array(1 << 21), "size": np.array(1), "rate": np.array(8000)}
    bounds = {"low": np.array(0, np.float32), "high": np.array(4000, np.float32)}
    mel = [node("MelWeightMatrix", "bins size rate low high", "y")]
    start = time.process_time()
    from_onnx(model(mel, {}, ["y"], {**sizes, **bounds}))
    assert time.process_time() - start < SECONDS
    sizes["bins"] = np.array(1 << 40)
    refused_soon(model(mel, {}, ["y"], {**sizes, **bounds}), "expects at most 4194304 weights")


@pytest.mark.parametrize(("stride", "extent"), [(1 << 31, 3), (3, 1 << 40)])
def test_transposed_convolutions_of_any_extents(stride, extent):
    filters = node("ConvTranspose", "x w", "y", strides=[stride])
    start = time.process_time()
    with limited(GIBIBYTE):
        from_onnx(model([filters], {"x": [1, 1, 4], "w": [1, 1, extent]}, ["y"]))
    assert time.process_time() - start < SECONDS
