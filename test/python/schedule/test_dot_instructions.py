"""The 8-bit dot products of each machine, looked up in the assembly made for it."""

import re

import llvmlite.binding as llvm
import pytest
from quantized_programs import Product

from relax_mlir.bindings import ir
from relax_mlir.codegen import build_llvm
from relax_mlir.codegen.llvm import to_llvm_22
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.target import Target

# The instruction of a target, and one of another that would be a wrong choice there.
INSTRUCTIONS = [
    ("x86-64-v4+avx512vnni", r"\bvpdpbusd\b.*%zmm", r"\bvpmaddubsw\b"),
    ("x86-64-v3+avxvnni", r"\{vex\}\s+vpdpbusd\b.*%ymm", r"%zmm|\bvpmaddubsw\b"),
    ("x86-64-v3", r"\bvpmaddubsw\b.*%ymm", r"%zmm|\bvpdpbusd\b"),
    ("aarch64-v8.2", r"\bsdot\s+v\d+\.4s, v\d+\.16b, v\d+\.", r"\bsmlal"),
    ("x86-64-v2", r"\bmulps\b.*%xmm", r"%ymm|\bv?pdpbusd\b|\bv?pmaddubsw\b"),
    ("aarch64", r"\bfmla\s+v\d+\.4s", r"\bsdot\b"),
]


def assembly(product: Product, target: Target) -> str:
    """The text of the machine code for a product."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(product.text())
        Pipeline.parse(pipeline(target.name, 2)).run(module)
        text = to_llvm_22(build_llvm(module, target))
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.llvm_features, opt=3
    )
    parsed = llvm.parse_assembly(text)
    parsed.triple, parsed.data_layout = target.triple, str(machine.target_data)
    return machine.emit_assembly(parsed)


@pytest.mark.parametrize(("name", "wanted", "unwanted"), INSTRUCTIONS)
def test_instructions_of_targets(name: str, wanted: str, unwanted: str) -> None:
    text = assembly(Product("q8_0", 32, 64, "int8"), Target.parse(name))
    assert len(re.findall(wanted, text)) >= 8, "a block is eight groups of four numbers"
    assert not re.search(unwanted, text)
    assert not re.search(r"(call|bl)\s+llvm\.", text), "an intrinsic that LLVM does not know"
