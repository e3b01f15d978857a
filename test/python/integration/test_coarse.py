"""Coarse annotations: objects and unknown ranks through calls, branches and loops."""

from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

X = 'tensor<?xf32, #graph.shape<["n"]>>'
OBJECT, UNKNOWN, OPEN = "!graph.object", "tensor<*xf32>", "tensor<?xf32>"
COARSE = [OBJECT, UNKNOWN, OPEN]
WAYS = [*LEVELS, "interpreted"]


def segments(operands: int) -> str:
    ins = ", ".join(str(int(i < operands)) for i in range(32))
    outs = ", ".join(str(int(i < 1)) for i in range(8))
    return f"operandSegmentSizes = array<i32: {ins}>, resultSegmentSizes = array<i32: {outs}>"


def cast(name: str, value: str, source: str, target: str) -> str:
    return f'{name} = "graph.match_cast"({value}) : ({source}) -> {target}\n'


def doubled(name: str, value: str, type_: str) -> str:
    """Twice the value, which has to be a tensor for that."""
    fine, label = OPEN if type_ == OBJECT else type_, name[1:]
    return (
        cast(f"%in{label}", value, type_, fine)
        + f'%sum{label} = "graph.add"(%in{label}, %in{label}) : ({fine}, {fine}) -> {fine}\n'
        + cast(name, f"%sum{label}", fine, type_)
    )


def carriers(type_: str, index: int) -> str:
    """Functions with what has the coarse type as parameter, result, branch, and state."""
    call = f'"graph.call"(%a) {{callee = @twice_{index}, {segments(1)}}} : ({X}) -> {type_}'
    return f"""
func.func private @twice_{index}(%a: {type_}) -> {type_} attributes {{graph.noinline}} {{
  {doubled("%0", "%a", type_)}
  return %0 : {type_}
}}
func.func @call_{index}(%a: {X}) -> {X} {{
  %0 = {call}
  {cast("%1", "%0", type_, X)}
  return %1 : {X}
}}
func.func @branch_{index}(%a: {X}, %c: i1) -> {X} {{
  %0 = scf.if %c -> {type_} {{
    {cast("%1", "%a", X, type_)}
    scf.yield %1 : {type_}
  }} else {{
    %2 = {call}
    scf.yield %2 : {type_}
  }}
  {cast("%3", "%0", type_, X)}
  return %3 : {X}
}}
func.func @for_{index}(%a: {X}, %k: index) -> {X} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  {cast("%0", "%a", X, type_)}
  %1 = scf.for %i = %zero to %k step %one iter_args(%s = %0) -> {type_} {{
    {doubled("%2", "%s", type_)}
    scf.yield %2 : {type_}
  }}
  {cast("%3", "%1", type_, X)}
  return %3 : {X}
}}
func.func @while_{index}(%a: {X}, %k: index) -> {X} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  {cast("%0", "%a", X, type_)}
  %1:2 = scf.while (%s = %0, %i = %zero) : ({type_}, index) -> ({type_}, index) {{
    %c = arith.cmpi slt, %i, %k : index
    scf.condition(%c) %s, %i : {type_}, index
  }} do {{
  ^body(%s: {type_}, %i: index):
    {doubled("%2", "%s", type_)}
    %j = arith.addi %i, %one : index
    scf.yield %2, %j : {type_}, index
  }}
  {cast("%3", "%1#0", type_, X)}
  return %3 : {X}
}}
"""


TEXT = "".join(carriers(type_, index) for index, type_ in enumerate(COARSE))


@pytest.fixture(scope="module")
def modules() -> dict[Any, Any]:
    """The module at every level, and interpreted."""
    built = {level: relax_mlir.compile(TEXT, opt_level=level) for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(TEXT)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", range(len(COARSE)))
@pytest.mark.parametrize("n", [0, 1, 7])
def test_values_pass_through_coarse_types(
    modules: dict[Any, Any], way: Any, index: int, n: int
) -> None:
    module, x = modules[way], np.random.default_rng(n).random(n, np.float32)
    np.testing.assert_array_equal(module[f"call_{index}"](x), 2 * x)
    np.testing.assert_array_equal(module[f"branch_{index}"](x, True), x)
    np.testing.assert_array_equal(module[f"branch_{index}"](x, False), 2 * x)
    for rounds in (0, 1, 3):
        for kind in ("for", "while"):
            np.testing.assert_array_equal(module[f"{kind}_{index}"](x, rounds), 2**rounds * x)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (OBJECT, "tensor<?xi32>"),
        (OBJECT, "tensor<?x?xf32>"),
        (OBJECT, "index"),
        (UNKNOWN, "tensor<?x?xf32>"),
    ],
)
def test_what_is_something_else_is_refused(source: str, target: str) -> None:
    body = cast("%0", "%a", X, source) + cast("%1", "%0", source, target)
    text = f"func.func @main(%a: {X}) -> {target} {{\n{body}return %1 : {target}\n}}"
    with pytest.raises(CompileError, match=r":3:\d+: error: 'graph.match_cast' op asserts .*never"):
        relax_mlir.compile(text)
    with pytest.raises(ExecutionError, match=r":3:\d+: error: 'graph.match_cast' op"):
        relax_mlir.interpret(text)["main"](np.zeros(3, np.float32))


@pytest.mark.parametrize("other", ["tensor<?xi32>", "index"])
def test_branches_of_other_kinds_make_objects(other: str) -> None:
    text = f"""
    func.func @main(%a: {X}, %b: {other}, %c: i1) -> {X} {{
      %0 = scf.if %c -> {OBJECT} {{
        {cast("%1", "%a", X, OBJECT)} scf.yield %1 : {OBJECT}
      }} else {{
        {cast("%2", "%b", other, OBJECT)} scf.yield %2 : {OBJECT}
      }}
      {cast("%3", "%0", OBJECT, X)} return %3 : {X}
    }}"""
    with pytest.raises(CompileError, match=r"'scf.if' op has '.*', which compiled code"):
        relax_mlir.compile(text)
    x = np.ones(2, np.float32)
    b = 5 if other == "index" else np.ones(2, np.int32)
    main = relax_mlir.interpret(text)["main"]
    np.testing.assert_array_equal(main(x, b, True), x)
    with pytest.raises(ExecutionError, match=r"'graph.match_cast' op"):
        main(x, b, False)


@pytest.mark.parametrize("type_", [OBJECT, UNKNOWN])
def test_a_loop_that_changes_the_kind_is_refused(type_: str) -> None:
    text = f"""
    func.func @main(%a: {X}, %k: index) -> {X} {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      {cast("%0", "%a", X, type_)}
      %1 = scf.for %i = %zero to %k step %one iter_args(%s = %0) -> {type_} {{
        %e = "graph.expand_dims"(%a) {{axes = array<i64: 0>}} : ({X}) -> tensor<?x?xf32>
        {cast("%2", "%e", "tensor<?x?xf32>", type_)}
        scf.yield %2 : {type_}
      }}
      {cast("%3", "%1", type_, X)} return %3 : {X}
    }}"""
    with pytest.raises(CompileError, match=r"error: .*(never|cannot hold|type)"):
        relax_mlir.compile(text)
