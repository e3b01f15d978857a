"""A kernel as WGSL, with what the host has to know to launch it.

The result is JSON:

    code       the text, whose entry point is `main`
    arguments  of each argument: {"bytes": of an element, "written": ..} or {"scalar": type}
    bindings   the arguments that share each binding
    words      what the words of the uniform buffer after the bindings are, after one that is
               zero: [argument, word of it], or [argument] for where it begins in its binding
    steps      what computes bounds of indices (`index_bounds.steps_of`)
    checks     steps whose results have to be below 2^31
"""

import json
from dataclasses import dataclass

from relax_mlir.bindings import gpu, ir
from relax_mlir.codegen.gpu.device_kernel import DeviceKernel
from relax_mlir.codegen.gpu.index_bounds import LIMIT, IndexBounds, steps_of
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.codegen.vector_math.composite import replace_composites
from relax_mlir.diagnostics import compile_error
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Device, Target

from .buffers import Argument, access, bindings_of, buffer_arguments, declare, group_buffer
from .dialects.floats import MATH
from .emitter import Emitter
from .kinds import Kind, kind_of
from .library import needed_by

_NO_VECTORS = "wasm32"
"""A CPU for which math is expanded into ops that any machine has."""


def compile_wgsl(kernel: DeviceKernel, device: Device) -> bytes:
    """The code of a kernel; raises CompileError, located, at an op that WGSL cannot express."""
    with kernel.module.context, ir.Location.unknown():
        module = ir.Module.parse(kernel.module.operation.get_asm(enable_debug_info=True))
        try:
            return json.dumps(_compiled(kernel, device, module)).encode()
        except PassFailure as failure:
            raise compile_error([failure.diagnostic]) from None


def _compiled(kernel: DeviceKernel, device: Device, module: ir.Module) -> dict[str, object]:
    (function,) = walk_ops(module, gpu.GPUFuncOp)
    cpu = Target.parse(_NO_VECTORS).host
    replace_composites(module, cpu, widest=32)
    _refuse_doubles(function)
    expand_math(module, cpu, widest=32)
    return _Kernel(kernel, device, function).compiled()


def _refuse_doubles(function: gpu.GPUFuncOp) -> None:
    """Raises PassFailure at a function of f64, which would be thousands of operations on words."""
    for op in walk_ops(function):
        name, is_double = op.operation.name, any(
            isinstance(x.type, ir.F64Type) for x in op.operation.results
        )  # fmt: skip
        if is_double and name.startswith("math.") and name.partition(".")[2] not in MATH:
            raise PassFailure(op, f"'{name}' of f64 has no translation to WGSL; f32 has one")


@dataclass(frozen=True)
class _Kernel:
    kernel: DeviceKernel
    device: Device
    function: gpu.GPUFuncOp

    def compiled(self) -> dict[str, object]:
        """What `compile_wgsl` returns."""
        emitter = Emitter(IndexBounds(self.function))
        self._check_bounds(emitter.bounds)
        buffers = buffer_arguments(self.kernel)
        bindings = bindings_of(buffers)
        words = self._words(bindings)
        self._declare(emitter, bindings, words)
        self._share(emitter)
        emitter.block(self._entry)
        if emitter.shared_bytes > self.device.shared_bytes:
            text = f"threads share {emitter.shared_bytes} bytes; a group of '{self.device}' has "
            raise PassFailure(self.function, f"{text}{self.device.shared_bytes}")
        steps, checks = steps_of(emitter.bounds.checks)
        return {
            "code": self._text(emitter),
            "arguments": [self._described(i, type_) for i, type_ in enumerate(self._arguments)],
            "bindings": [[a.index for a in binding] for binding in bindings],
            "words": words,
            "steps": steps,
            "checks": checks,
        }

    @property
    def _entry(self) -> ir.Block:
        return self.function.operation.regions[0].blocks[0]

    @property
    def _arguments(self) -> tuple[ir.Type, ...]:
        return self.kernel.arguments

    def _check_bounds(self, bounds: IndexBounds) -> None:
        if any(isinstance(x, int) for x in bounds.checks):
            text = f"has indices of {LIMIT} or more; those of '{self.device}' have 32 bits"
            raise PassFailure(self.function, text)

    def _scalar(self, index: int) -> Kind:
        type_ = self._arguments[index]
        kind = kind_of(type_)
        if kind is None:
            raise PassFailure(self.function, f"takes a scalar of '{type_}', which WGSL lacks")
        return kind

    def _words(self, bindings: list[list[Argument]]) -> list[list[int]]:
        words: list[list[int]] = []
        for i, type_ in enumerate(self._arguments):
            if not isinstance(type_, ir.MemRefType):
                words += [[i, word] for word in range(max(1, self._scalar(i).bytes // 4))]
        return words + [[a.index] for binding in bindings if len(binding) > 1 for a in binding]

    def _declare(
        self, emitter: Emitter, bindings: list[list[Argument]], words: list[list[int]]
    ) -> None:
        """Declares bindings and scalars, and names the arguments."""
        fields = ["zero", *(_field(word) for word in words)]
        emitter.declarations.append(
            "struct Params {\n" + "".join(f"  {name}: u32,\n" for name in fields) + "}"
        )
        functions = []
        for binding, arguments in enumerate(bindings):
            emitter.declarations.append(declare(binding, arguments))
            for a in arguments:
                buffer, own = access(binding, a, len(arguments) > 1)
                emitter.buffers[self._entry.arguments[a.index]] = buffer
                functions += own
        uniform = f"@group(0) @binding({len(bindings)}) var<uniform> params: Params;"
        emitter.declarations += [uniform, *functions]
        for i, type_ in enumerate(self._arguments):
            if not isinstance(type_, ir.MemRefType):
                emitter.let(self._entry.arguments[i], _passed(i, self._scalar(i)))

    def _share(self, emitter: Emitter) -> None:
        """Declares the memory of a group."""
        for index, value in enumerate(list(self._entry.arguments)[len(self._arguments) :]):
            type_ = ir.MemRefType(value.type)
            kind = kind_of(type_.element_type)
            if kind is None:
                text = f"shares elements of {type_.element_type}, which WGSL lacks"
                raise PassFailure(self.function, text)
            emitter.buffers[value], declared, count = group_buffer(f"shared{index}", type_, kind)
            emitter.declarations.append(declared)
            emitter.shared_bytes += count

    def _text(self, emitter: Emitter) -> str:
        kinds = {
            name: "u32" if name.endswith("index") else "vec3<u32>" for name in emitter.builtins
        }
        inputs = ", ".join(f"@builtin({name}) {name}: {kind}" for name, kind in kinds.items())
        size = ", ".join(map(str, self.kernel.block))
        body = "\n".join(emitter.lines)
        main = f"@compute @workgroup_size({size})\nfn main({inputs}) {{\n{body}\n}}\n"
        own = "\n\n".join([*emitter.declarations, main])
        return "\n\n".join([*needed_by(own), own])

    def _described(self, index: int, type_: ir.Type) -> dict[str, object]:
        if not isinstance(type_, ir.MemRefType):
            return {"scalar": self._scalar(index).name}
        kind = kind_of(type_.element_type)
        assert kind is not None
        return {"bytes": kind.bytes, "written": index in self.kernel.written}


def _field(word: list[int]) -> str:
    """The name of a word of the uniform buffer."""
    return f"begin{word[0]}" if len(word) == 1 else f"s{word[0]}_{word[1]}"


def _passed(index: int, kind: Kind) -> str:
    """A scalar, of its words."""
    word = f"params.s{index}_0"
    if kind.bytes == 8:
        return f"vec2<u32>({word}, params.s{index}_1)"
    if kind.name == "i1":
        return f"{word} != 0u"
    return word if kind.value == "u32" else f"bitcast<{kind.value}>({word})"
