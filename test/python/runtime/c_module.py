"""Shared objects for tests of the runtime: C functions play the part of generated code.

    add = CFunction("add", [Tensor("x", "f32", ["n"])], [Output("f32", ["n"])], body="...")
    exe = load(build_module([add], directory))

A body is C code that runs after `rx_bind`; it sees `context`, `args`, `results` and the values
`symbols[]`, and each symbol under its own name.
"""

import ast
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.elf_object import GLOBAL, read_object
from relax_mlir.codegen.llvm import Source, compile_sources
from relax_mlir.runtime import bitcode_path
from relax_mlir.runtime.build import PROCESS
from relax_mlir.target import Target

CSRC = bitcode_path(platform.machine()).parent.parent / "csrc"
ZIG = (sys.executable, "-m", "ziglang")

DTYPES = {
    "f16": (2, 16),
    "f32": (2, 32),
    "f64": (2, 64),
    "bf16": (4, 16),
    "i1": (6, 8),
    "i8": (0, 8),
    "i32": (0, 32),
    "i64": (0, 64),
    "ui8": (1, 8),
}
OPERATORS = {ast.Add: 2, ast.Sub: 3, ast.Mult: 4, ast.FloorDiv: 5, ast.Mod: 6}
FUNCTIONS = {"min": 7, "max": 8}
RELATIONS = {ast.Eq: 0, ast.LtE: 1, ast.Lt: 2, ast.GtE: 3, ast.Gt: 4, ast.NotEq: 5}

Dim = int | str | None


@dataclass(frozen=True)
class Tensor:
    """A tensor argument; `dims` are Python expressions, None is a dim or rank not checked."""

    name: str
    element: str
    dims: Sequence[Dim] | None
    inout: bool = False
    kind: str = "tensor"


def shape(name: str, dims: Sequence[Dim] | None) -> Tensor:
    """A shape value argument."""
    return Tensor(name, "i64", dims, kind="shape")


@dataclass(frozen=True)
class Output:
    """A result as the metadata describes it."""

    element: str
    dims: Sequence[Dim] | None
    alias: int | None = None
    kind: str = "tensor"


@dataclass(frozen=True)
class CFunction:
    """A function of a test module."""

    name: str
    arguments: Sequence[Tensor] = ()
    results: Sequence[Output] = ()
    facts: Sequence[str] = ()
    body: str = ""
    symbols: list[str] = field(default_factory=list)


def build_module(
    functions: Sequence[CFunction],
    directory: Path,
    prelude: str = "",
    libraries: Sequence[dict] = (),
) -> Path:
    """Compiles the functions, links them with the runtime's bitcode, returns the shared object."""
    source = directory / "module.c"
    source.write_text(c_source(functions, prelude, libraries))
    made = directory / "module.o"
    flags = ("-O2", "-fPIC", "-fno-sanitize=all", "-fno-stack-protector")
    target = f"{platform.machine()}-linux-gnu.2.17"
    command = (*ZIG, "cc", "-target", target, *flags, f"-I{CSRC}", "-c", source, "-o", made)
    subprocess.run(command, check=True)
    objects = [_runtime(), made.read_bytes()]
    exports = [name for data in objects for name in _public(data)]
    unique = [name for name in exports if name.startswith(PROCESS)]
    result = directory / "module.so"
    result.write_bytes(link_shared(objects, exports, unique=unique))
    return result


def c_source(
    functions: Sequence[CFunction], prelude: str = "", libraries: Sequence[dict] = ()
) -> str:
    """The C code of a module."""
    metadata = {
        "functions": {function.name: _signature(function) for function in functions},
        "libraries": list(libraries),
    }
    parts = ['#include "relax_runtime.h"', "#include <string.h>", prelude]
    parts += [_define(function) for function in functions]
    parts.append(f"const char *rx_metadata(void) {{ return {json.dumps(json.dumps(metadata))}; }}")
    return "\n".join(parts)


@cache
def _runtime() -> bytes:
    """The runtime as an object."""
    source = Source("", bitcode_path(platform.machine()).read_bytes())
    return compile_sources([source], Target.parse("native"), 3)[0]


def _public(data: bytes) -> list[str]:
    """The symbols that an object offers to other libraries."""
    return [
        symbol.name
        for symbol in read_object(data).symbols
        if symbol.binding == GLOBAL and symbol.defined and not symbol.hidden
    ]


def _signature(function: CFunction) -> dict:
    return {
        "arguments": [
            {"name": a.name, "kind": a.kind, "dtype": a.element, "dims": a.dims, "inout": a.inout}
            for a in function.arguments
        ],
        "results": [
            {"kind": r.kind, "dtype": r.element, "dims": r.dims, "alias": r.alias}
            for r in function.results
        ],
        "facts": list(function.facts),
    }


def _define(function: CFunction) -> str:
    f, name = function, function.name
    args = [_argument(f, argument) for argument in f.arguments]
    facts = [_fact(f, fact) for fact in f.facts]
    names = ", ".join(f'"{symbol}"' for symbol in f.symbols)
    open_ = [
        str(i) for i, a in enumerate(f.arguments) if any(isinstance(d, str) for d in a.dims or ())
    ]
    values = "".join(f"  int64_t {s} = symbols[{i}];\n" for i, s in enumerate(f.symbols))
    uses = "".join(f"  (void){s};\n" for s in f.symbols)
    return f"""
static const RxArg {name}_args[] = {{{", ".join(args)}}};
static const RxFact {name}_facts[] = {{{", ".join(facts)}}};
static const char *const {name}_symbols[] = {{{names}}};
static const int64_t {name}_open[] = {{{", ".join(open_)}}};
static const RxFunction {name}_info = {{"{name}", {len(args)}, {len(f.results)}, {len(f.symbols)},
    {len(facts)}, {name}_args, {name}_symbols, {name}_facts,
    {len(open_)}, {name}_open}};
RX_API int32_t rx_fn_{name}(RxContext *context, const DLTensor *args, int32_t num_args,
                            DLTensor *results, int32_t num_results) {{
  int64_t symbols[{len(f.symbols) + 1}];
  if (rx_bind(context, &{name}_info, args, num_args, num_results, symbols)) return 1;
{values}{uses}{f.body}
  return 0;
}}"""


def _argument(function: CFunction, argument: Tensor) -> str:
    code, bits = DTYPES[argument.element]
    kind = int(argument.kind == "shape")
    ndim, dims = -1, "NULL"
    if argument.dims is not None:
        ndim = len(argument.dims)
        dims = f"(RxDim[]){{{', '.join(_dim(function, dim) for dim in argument.dims)}}}"
    return f'{{"{argument.name}", {kind}, {code}, {bits}, {ndim}, {dims}}}'


def _dim(function: CFunction, dim: Dim) -> str:
    if dim is None:
        return "{0, NULL}"
    program = postfix(str(dim), function.symbols)
    return f"{{{len(program)}, (const int64_t[]){{{', '.join(map(str, program))}}}}}"


def _fact(function: CFunction, fact: str) -> str:
    compare = ast.parse(fact, mode="eval").body
    sides = [_dim(function, ast.unparse(side)) for side in (compare.left, compare.comparators[0])]
    relation = RELATIONS[type(compare.ops[0])]
    return f'{{{", ".join(sides)}, {relation}, 0, "{fact}"}}'


def postfix(text: str, symbols: list[str]) -> list[int]:
    """Compiles a Python expression; symbols that are new are appended to `symbols`."""
    return _postfix(ast.parse(text, mode="eval").body, symbols)


def _postfix(node: ast.expr, symbols: list[str]) -> list[int]:
    if isinstance(node, ast.Name):
        if node.id not in symbols:
            symbols.append(node.id)
        return [1, symbols.index(node.id)]
    if isinstance(node, ast.BinOp):
        operands, opcode = [node.left, node.right], OPERATORS[type(node.op)]
    elif isinstance(node, ast.Call):
        operands, opcode = node.args, FUNCTIONS[node.func.id]
    else:
        return [0, ast.literal_eval(node)]
    return [word for operand in operands for word in _postfix(operand, symbols)] + [opcode, 0]
