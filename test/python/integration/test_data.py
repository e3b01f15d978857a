"""Large constants: from a module or its text to a section of the file, by way of no text."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i1": np.bool_,
    "i8": np.int8,
    "i64": np.int64,
}
RETURNS = """
func.func @main() -> {0} {{
  %0 = arith.constant {1} : {0}
  return %0 : {0}
}}"""


def random(element: str, *shape: int) -> np.ndarray:
    """Random bits, as they are stored; numbers of floats."""
    rng = np.random.default_rng(len(element))
    if DTYPES[element] == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if element.startswith("f"):
        return rng.standard_normal(shape).astype(DTYPES[element])
    return rng.integers(0, 1 << 14, shape).astype(DTYPES[element])


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("element", DTYPES)
def test_elements_arrive_bit_by_bit(element: str, level: int):
    array = random(element, 7, 81)
    type_ = f"tensor<7x81x{element}>"
    hexadecimal = array.tobytes().hex()
    if element == "i1":  # booleans are written one by one
        text = RETURNS.format(type_, f"dense<{array.astype(int).astype(bool).tolist()}>".lower())
    else:
        text = RETURNS.format(type_, f'dense<"0x{hexadecimal}">')
    for function in (relax_mlir.compile(text, opt_level=level), relax_mlir.interpret(text)):
        result = np.asarray(function["main"]())
        assert result.tobytes() == array.tobytes()


@pytest.mark.parametrize("level", [0, 2])
def test_a_resource_of_a_text_and_of_a_module(level: int):
    array = random("f32", 300)
    line = '{{-# dialect_resources: {{ builtin: {{ weights: "0x04000000{}" }} }} #-}}'
    text = RETURNS.format("tensor<300xf32>", "dense_resource<weights>")
    text += line.format(array.tobytes().hex())
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        before = str(module)
        for source in (text, module):
            compiled = relax_mlir.compile(source, opt_level=level)
            np.testing.assert_array_equal(compiled["main"](), array)
            np.testing.assert_array_equal(relax_mlir.interpret(source)["main"](), array)
        assert str(module) == before


def test_a_resource_without_data_is_refused():
    text = RETURNS.format("tensor<300xf32>", "dense_resource<weights>")
    with pytest.raises(CompileError, match=r":3:.*has no data"):
        relax_mlir.compile(text)
    with pytest.raises(CompileError, match="has no data"):
        relax_mlir.interpret(text)["main"]()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        with pytest.raises(CompileError, match="has no data"):
            relax_mlir.compile(module)


@pytest.mark.parametrize("level", [0, 2])
def test_repeated_and_absent_elements(level: int):
    text = """
    func.func @main() -> (tensor<70x9xf16>, tensor<700xi1>, tensor<0x300xf32>) {
      %0 = arith.constant dense<2.5> : tensor<70x9xf16>
      %1 = arith.constant dense<true> : tensor<700xi1>
      %2 = arith.constant dense<> : tensor<0x300xf32>
      return %0, %1, %2 : tensor<70x9xf16>, tensor<700xi1>, tensor<0x300xf32>
    }"""
    splat, booleans, nothing = relax_mlir.compile(text, opt_level=level)["main"]()
    assert splat.shape == (70, 9)
    assert (splat == 2.5).all()
    assert booleans.all()
    assert nothing.shape == (0, 300)


@pytest.mark.parametrize("level", [0, 2])
def test_large_repeated_elements_are_in_no_file(level: int, tmp_path: Path):
    kinds = {"f32": "-0.0", "f16": "0.0", "bf16": "1.5", "i1": "true", "i64": "-7"}
    shape, row = (1 << 10, 1 << 10), "tensor<1x1024xf32>"
    types = {element: f"tensor<{shape[0]}x{shape[1]}x{element}>" for element in kinds}
    text = f"""
    func.func @main(%w: {row}) -> ({", ".join(types.values())}, {row}) {{
      {"".join(f"%{e} = arith.constant dense<{v}> : {types[e]}; " for e, v in kinds.items())}
      %m = "graph.matmul"(%w, %f32) : ({row}, {types["f32"]}) -> {row}
      return {", ".join(f"%{e}" for e in kinds)}, %m : {", ".join(types.values())}, {row}
    }}""".replace("; ", "\n")
    exe = relax_mlir.compile(text, opt_level=level)
    exe.save(tmp_path / "few.so")
    assert (tmp_path / "few.so").stat().st_size < 200_000
    f32, f16, bf16, i1, i64, product = exe["main"](np.ones((1, 1 << 10), np.float32))
    assert np.signbit(f32).all()
    assert not f16.any()
    assert (np.asarray(bf16).view(np.uint16) == 0x3FC0).all()
    assert i1.all()
    assert (i64 == -7).all()
    assert not product.any()


def test_equal_texts_of_different_data_are_different_modules():
    """What the text leaves out is part of the cache's key."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(RETURNS.format("tensor<600xf32>", "dense<0.0>"))
        (constant, _) = module.body.operations[0].entry_block.operations
        for seed in (1, 2):
            array = np.random.default_rng(seed).standard_normal(600).astype(np.float32)
            constant.attributes["value"] = ir.DenseElementsAttr.get(array)
            np.testing.assert_array_equal(relax_mlir.compile(module)["main"](), array)


BIG = """
import sys
import numpy as np
import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context

ROWS = 1 << 14
with make_context(), ir.Location.unknown():
    module = ir.Module.parse('''
      func.func @main(%x: tensor<1x1024xf32>) -> tensor<ROWSx1024xf32> {
        %0 = arith.constant dense<0.0> : tensor<ROWSx1024xf32>
        %1 = "graph.add"(%0, %x) : (tensor<ROWSx1024xf32>, tensor<1x1024xf32>)
          -> tensor<ROWSx1024xf32>
        return %1 : tensor<ROWSx1024xf32>
      }'''.replace("ROWS", str(ROWS)))
    def peak():
        # Not `ru_maxrss`, which has the peak of the process that started this one.
        (line,) = (each for each in open("/proc/self/status") if each.startswith("VmHWM"))
        return int(line.split()[1]) >> 10
    def compile(elements):
        op = module.body.operations[0].entry_block.operations[0]
        op.attributes["value"] = elements
        return relax_mlir.compile(module, use_cache=False)
    small = compile(ir.Attribute.parse(f"dense<1.0> : tensor<{ROWS}x1024xf32>"))
    del small
    array = np.arange(ROWS * 1024, dtype=np.float32).reshape(ROWS, 1024)
    elements = ir.DenseElementsAttr.get(array)
    before = peak()
    compiled = compile(elements)
    print(peak() - before)
    compiled.save(sys.argv[1])
"""


def test_a_constant_of_64_megabytes_takes_no_memory(tmp_path: Path):
    path = tmp_path / "big.so"
    run = subprocess.run(
        [sys.executable, "-c", BIG, str(path)], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 48  # MB, of 64 that a single copy would take
    data = path.read_bytes()
    first = np.arange(1 << 14, dtype=np.float32).tobytes()
    assert data.index(first) % 4096 == 0
    result = relax_mlir.load(path)["main"](np.zeros((1, 1024), np.float32))
    np.testing.assert_array_equal(result.ravel(), np.arange(1 << 24, dtype=np.float32))


def test_processes_share_the_pages_of_constants(tmp_path: Path):
    count = 1 << 18
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(
            f"""func.func @main(%x: tensor<{count}xf32>) -> tensor<{count}xf32> {{
              %0 = arith.constant dense<0.0> : tensor<{count}xf32>
              %1 = "graph.add"(%0, %x) : (tensor<{count}xf32>, tensor<{count}xf32>)
                -> tensor<{count}xf32>
              return %1 : tensor<{count}xf32>
            }}"""
        )
        array = np.arange(count, dtype=np.float32)
        constant = module.body.operations[0].entry_block.operations[0]
        constant.attributes["value"] = ir.DenseElementsAttr.get(array)
        path = tmp_path / "shared.so"
        relax_mlir.compile(module).save(path)
    made = relax_mlir.load(path)
    np.testing.assert_array_equal(made["main"](np.zeros(count, np.float32)), array)
    mapped = [m for m in _mappings(path.stat().st_ino) if m["Size"] >= array.nbytes >> 10]
    (data,) = mapped
    assert data["Rss"] >= array.nbytes >> 10  # kB, read by the call
    assert data["Anonymous"] == 0  # no page is a copy: all are the kernel's of the file


def _mappings(inode: int) -> list[dict[str, int]]:
    """The numbers that the kernel has of each mapping of a file into this process, in kB."""
    found: list[dict[str, int]] = []
    wanted = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            wanted = words[4] == str(inode)
            if wanted:
                found.append({})
        elif wanted and words[-1] == "kB":
            found[-1][words[0][:-1]] = int(words[1])
    return found
