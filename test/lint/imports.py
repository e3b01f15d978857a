# RUN: %PYTHON %s %ROOT
"""Fails on an import that points upwards, closes a cycle, or hides inside a function.

A part is a module or package directly below `relax_mlir`, or a folder below such a
package that has a rank of its own; a part imports parts of its own rank or lower. The runtime side
sees nothing of the compiler, the frontends only dialects and decompositions. Tools may import
inside functions, so that `--help` stays quick.

Kernels may be made for other machines than CPUs one day: only `schedule/backends.py` imports
`schedule/cpu`, and parts that are for any machine name neither CPUs nor their instructions.
"""

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

RANKS = [
    {
        *("bindings", "errors", "symbolic", "target", "runtime", "executable"),
        *("atomic_files", "trusted_files", "child_process", "cache", "fingerprint", "extensions"),
        "mapped_arrays",
    },
    {"bytecode", "data", "diagnostics", "dialects", "source"},
    {
        *("analysis", "decompositions", "outlining", "panels", "passes", "passing", "patterns"),
        *("rewriting", "rules"),
    },
    {"gradients"},
    {"interpreter"},
    {"legalize"},
    {"legalize.movement"},
    {"legalize.elementwise"},
    {"legalize.reductions"},
    {"legalize.products", "legalize.sorts"},
    {"legalize.vision"},
    {"conversion"},
    {"program"},
    {"schedule.build"},
    {"schedule.nests"},
    {"schedule.backend"},
    {"schedule.cpu.blocking"},
    {"schedule.cpu.isa"},
    {"schedule.cpu.product"},
    {"schedule.cpu.attention", "schedule.cpu.convolution", "schedule.cpu.quantized"},
    {"schedule.cpu.backend", "schedule.gpu"},
    {"schedule"},
    {"codegen", "host"},
    {"transforms"},
    {"pipelines"},
    {"compiler"},
    {
        "dataflow",
        "explanation",
        "frontends",
        "frontends.jax",
        "frontends.onnx.backend",
        "frontends.torch.dynamo",
        "machine",
        "profile",
        "lsp",
        "testing",
        "training",
    },
    {"llm.formats"},
    {"llm.rounding"},
    {"llm.modules", "llm.tokenization"},
    {"llm.architectures"},
    {"llm.checkpoints"},
    {"llm.decoder"},
    {"llm.calibration", "llm.vision"},
    {"llm.generation", "llm.batching", "llm.encoders", "llm.speech"},
    {"llm.measurement", "llm.offline", "llm.serving"},
    {"llm.ray"},
    {"llm"},
    {"tools"},
]
RANK = {part: rank for rank, parts in enumerate(RANKS) for part in parts}
ONLY = {
    "errors": set(),
    "runtime": {"errors", "target", "executable"},
    "executable": {"errors", "target", "runtime"},
    "decompositions": {"bindings", "errors", "symbolic", "dialects"},
    "frontends": {
        *("bindings", "errors", "symbolic", "dialects", "decompositions", "source"),
        *("child_process", "data", "diagnostics"),
    },
}

FOR_ANY_MACHINE = (
    *("analysis", "dialects", "host", "legalize", "llm", "machine", "program"),
    *("passes.base", "passes.elements", "passes.pipeline", "passes.runner"),
    *("schedule.backend", "schedule.build", "schedule.nests", "transforms"),
)
OF_CPUS = re.compile(r"x86|avx|amx|vnni|vpdp|tdpb|neon|sdot|znver|xeon|\bCpu\b|cpu$", re.IGNORECASE)


def imported_parts(node: ast.AST, package: list[str]) -> Iterator[str]:
    """The parts that an import statement inside `package` names."""
    if isinstance(node, ast.Import):
        modules = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        module = base + (node.module.split(".") if node.module else [])
        modules = [[*module, alias.name] for alias in node.names]
    else:
        return
    for module in modules:
        if module[0] == "relax_mlir" and len(module) > 1:
            yield part_of(module[1:])


def part_of(path: list[str]) -> str:
    """The part that a module is in, which is given below `relax_mlir`: the longest with a rank."""
    prefixes = (".".join(path[:length]) for length in range(len(path), 0, -1))
    return next((prefix for prefix in prefixes if prefix in RANK), path[0])


def main(root: Path) -> None:
    """Reads every source file; the folder `dialects` is the package `relax_mlir.dialects`."""
    wrong: list[str] = []
    edges: dict[str, set[str]] = {}
    roots = {root / "relax_mlir": ["relax_mlir"], root / "dialects": ["relax_mlir", "dialects"]}
    for folder, name in roots.items():
        for path in sorted(folder.rglob("*.py")):
            if path.is_relative_to(root / "relax_mlir" / "dialects"):
                continue
            package = [*name, *path.relative_to(folder).parts[:-1]]
            here = part_of([*package[1:], path.stem])
            wrong += check_file(path, package, here, edges)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        wrong.append("parts import each other: " + " -> ".join(reversed(error.args[1])))
    sys.exit("\n".join(wrong) or 0)


def check_file(
    path: Path, package: list[str], here: str, edges: dict[str, set[str]]
) -> Iterator[str]:
    """Yields what is wrong in one file, and notes which parts it imports."""
    if here not in RANK and here != "__init__":
        yield f"{path}: the part '{here}' has no rank in {Path(__file__).name}"
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = ".".join([*package[1:], path.stem])
    if f"{file}.".startswith(tuple(f"{part}." for part in FOR_ANY_MACHINE)):
        for line, word in named_cpus(tree):
            yield f"{path}:{line}: '{word}' is of CPUs, but {here} is for any machine"
    for node in ast.walk(tree):
        for there in imported_parts(node, package):
            place = f"{path}:{node.lineno}"
            if there not in RANK or there == here:
                continue
            is_lazy = here == "tools" or path.stem == "__init__"
            if node not in tree.body and not is_lazy:
                yield f"{place}: import inside a function"
            if here == "__init__":
                continue
            edges.setdefault(here, set()).add(there)
            if there.startswith("schedule.cpu") and not _may_name_cpus(path, here):
                yield f"{place}: only relax_mlir/schedule/backends.py may import {there}"
            if RANK[there] > RANK[here] or there not in ONLY.get(here, RANK):
                yield f"{place}: {here} must not import {there}"
        if isinstance(node, ast.ImportFrom) and node.module == "__future__" and here == "dialects":
            yield f"{path}:{node.lineno}: dialect classes are made from their annotations"


def _may_name_cpus(path: Path, here: str) -> bool:
    return here.startswith("schedule.cpu") or (here == "schedule" and path.stem == "backends")


def named_cpus(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names and texts of a file, but for docstrings, that are of CPUs: line and word."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        words = {
            ast.Name: lambda node: node.id,
            ast.Attribute: lambda node: node.attr,
            ast.alias: lambda node: node.name,
            ast.Constant: lambda node: node.value if node not in texts else "",
        }.get(type(node), lambda node: "")(node)
        if isinstance(words, str) and (found := OF_CPUS.search(words)):
            yield node.lineno, found[0]


main(Path(sys.argv[1]))
