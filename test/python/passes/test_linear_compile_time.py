"""Compiling takes time in proportion to the program: four times as long, four times the calls.

Calls of Python's functions are counted, which are the same on each machine.
"""

import cProfile
import pstats

import pytest

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline

PLANNED = "relax-infer-shapes,relax-legalize-ops,relax-lower-calls,relax-plan-memory"
ALL = pipeline("x86-64-v3", 2).replace("relax-check-memory-plan,", "")  # which tests add
MOST = 8
"""Times the calls of a program a fourth as long: 4 if they are linear, 16 if they are quadratic."""


def tensor(dim: str) -> str:
    return f'tensor<?x4xf32, #graph.shape<["{dim}", 4]>>'


N = tensor("n")


def _main(arguments: list[str], lines: list[str], result: str, type_: str) -> str:
    body = "\n".join(lines)
    head = f"func.func @main({', '.join(arguments)}) -> {type_} {{"
    return f"{head}\n{body}\nreturn {result} : {type_}\n}}\n"


def functions(count: int) -> str:
    one = f'(%x: {N}) -> {N} {{\n%0 = "graph.exp"(%x) : ({N}) -> {N}\nreturn %0 : {N}\n}}\n'
    return "".join(f"func.func @f{i}{one}" for i in range(count))


def chain(count: int) -> str:
    lines = [f'%{i + 1} = "graph.exp"(%{i}) : ({N}) -> {N}' for i in range(count)]
    return _main([f"%0: {N}"], lines, f"%{count}", N)


def branches(count: int) -> str:
    lines = ["%c = arith.constant true"]
    for i in range(count):
        lines += [
            f"%{i + 1} = scf.if %c -> {N} {{",
            f'%a{i} = "graph.exp"(%{i}) : ({N}) -> {N}',
            f"scf.yield %a{i} : {N}\n}} else {{\nscf.yield %{i} : {N}\n}}",
        ]
    return _main([f"%0: {N}"], lines, f"%{count}", N)


def assumed_dims(count: int) -> str:
    """Each sum takes for granted that one more symbol is equal to the others."""
    types = [tensor(f"n{i}") for i in range(count)]
    sums = ["%a0", *(f"%s{i}" for i in range(1, count))]
    lines = [
        f'{sums[i]} = "graph.add"({sums[i - 1]}, %a{i}) : ({types[0]}, {types[i]}) -> {types[0]}'
        for i in range(1, count)
    ]
    return _main([f"%a{i}: {types[i]}" for i in range(count)], lines, sums[-1], types[0])


def temporaries(count: int) -> str:
    """Sizes that cannot be compared: no temporary fits where another was."""
    types = [tensor(f"n{i}") for i in range(count)]
    lines = []
    for i, t in enumerate(types):
        lines += [
            f'%b{i} = "graph.exp"(%a{i}) : ({t}) -> {t}',
            f'%c{i} = "graph.tanh"(%b{i}) : ({t}) -> {t}',
        ]
    arguments = [f"%a{i}: {t}" for i, t in enumerate(types)]
    return _main(arguments, lines, f"%c{count - 1}", types[-1])


def calls_of(text: str, passes: str) -> int:
    """How many calls of Python's functions the passes take, a second time."""
    run = Pipeline.parse(passes).run
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        with cProfile.Profile() as profile:
            run(module)
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize(
    ("program", "count", "passes"),
    [
        (functions, 20, ALL),
        (chain, 20, ALL),
        (branches, 20, ALL),
        (assumed_dims, 15, ALL),
        (temporaries, 40, PLANNED),
    ],
)
def test_calls_grow_as_the_program_does(program, count, passes):
    calls_of(program(2), passes)  # what is done once
    calls = calls_of(program(count), passes)
    assert calls_of(program(4 * count), passes) < MOST * calls


def test_ops_nested_too_deep_are_refused():
    depth = 300
    lines = ["%c = arith.constant true"]
    for i in range(depth):
        lines += [f"%i{i} = scf.if %c -> {N} {{"]
    for i in reversed(range(depth)):
        inner = f"%i{i + 1}" if i + 1 < depth else "%0"
        lines += [f"scf.yield {inner} : {N}\n}} else {{\nscf.yield %0 : {N}\n}}"]
    text = _main([f"%0: {N}"], lines, "%i0", N)
    with pytest.raises(CompileError, match="has more than 100 ops around it"):
        calls_of(text, "relax-infer-shapes")
