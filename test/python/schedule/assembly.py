"""The machine code of a module, as text, for any target."""

import re

import llvmlite.binding as llvm

from relax_mlir.bindings import ir
from relax_mlir.codegen import building
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.target import Target


def assembly(source: str, target: Target) -> str:
    """The assembly of a module of graph functions."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        Pipeline.parse(pipeline(str(target), 2)).run(module)
        with building(target) as build:
            text = build.llvm_text(module)
    machine = llvm.Target.from_triple(target.host.triple).create_target_machine(
        cpu=target.host.cpu, features=target.host.llvm_features, opt=3
    )
    parsed = llvm.parse_assembly(text)
    parsed.triple, parsed.data_layout = target.host.triple, str(machine.target_data)
    return machine.emit_assembly(parsed)


def operands_in_memory(text: str, name: str) -> int:
    """Count of instructions of a name with a memory operand that is broadcast to 16 lanes.

    Only addresses with a base and no index, which Intel's cores fuse.
    """
    return len(re.findall(rf"\b{name}\s+[-0-9]*\(%\w+\)\{{1to16\}}", text))
