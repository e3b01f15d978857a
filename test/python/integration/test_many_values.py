"""Ops with more operands and results than their declarations have, interpreted and compiled."""

import io

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.bindings import arities, ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import ConcatOp
from relax_mlir.errors import CompileError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.testing.equivalence import Equivalence


def rows(width: int) -> str:
    return f'tensor<?x{width}xf32, #graph.shape<["n", {width}]>>'


def op(name: str, ins: list[str], types: list[str], outs: list[str], attributes: str = "") -> str:
    """An op of its arity alone; the type of each operand and result is its own."""
    return (
        f'"graph.{name}_{len(ins)}to{len(outs)}"({", ".join(ins)}) {{{attributes}}} '
        f": ({', '.join(types)}) -> ({', '.join(outs)})"
    )


def function(name: str, types: list[str], results: list[str], body: str) -> str:
    parameters = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    return f"func.func {name}({parameters}) -> ({', '.join(results)}) {{\n{body}\n}}\n"


def returned(values: list[str], types: list[str]) -> str:
    return f"return {', '.join(values)} : {', '.join(types)}"


def joined(count: int) -> str:
    """A concatenation of many tensors of three widths."""
    types, total = [rows(i % 3 + 1) for i in range(count)], sum(i % 3 + 1 for i in range(count))
    operands = [f"%a{i}" for i in range(count)]
    concat = op("concat", operands, types, [rows(total)], "axis = 1 : i64")
    body = f"%0 = {concat}\n{returned(['%0'], [rows(total)])}"
    return function("@joined", types, [rows(total)], body)


def called(ins: int, outs: int) -> str:
    """Calls of a function, directly and as a closure that has half of its arguments."""
    types = [rows(i % 3 + 1) for i in range(ins)]
    results, operands = types[:outs], [f"%a{i}" for i in range(ins)]
    last = [i + 3 * ((ins - 1 - i) // 3) for i in range(outs)]
    sums = [
        f'%y{i} = "graph.add"(%a{i}, %a{j}) : ({types[i]}, {types[i]}) -> {types[i]}'
        for i, j in enumerate(last)
    ]
    ends = returned([f"%y{i}" for i in range(outs)], results)
    kept, half = function("private @kept", types, results, "\n".join([*sums, ends])), ins // 2
    kept = kept.replace(") {\n", ") attributes {graph.noinline} {\n", 1)
    call = op("call", operands, types, results, "callee = @kept")
    taken = f"({', '.join(types[half:])}) -> ({', '.join(results)})"
    closure = op("make_closure", operands[:half], types[:half], [taken], "callee = @kept")
    passed = ["%f", *[f"%r#{i}" if i < outs else f"%a{i}" for i in range(half, ins)]]
    invoke = op("invoke_closure", passed, [taken, *types[half:]], results)
    ends = returned([f"%s#{i}" for i in range(outs)], results)
    body = f"%r:{outs} = {call}\n%f = {closure}\n%s:{outs} = {invoke}\n{ends}"
    return kept + function("@called", types, results, body)


def carried(count: int) -> str:
    """A tuple of many elements of two kinds, which a loop carries."""
    kinds = [rows(2) if i % 2 else "index" for i in range(count)]
    whole, operands = f"tuple<{', '.join(kinds)}>", [f"%a{i}" for i in range(count)]
    lines = [f"%t = {op('tuple', operands, kinds, [whole])}"]
    lines += ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
    lines += [f"%r = scf.for %i = %zero to %a0 step %one iter_args(%s = %t) -> {whole} {{"]
    for i, kind in enumerate(kinds):
        get = f'"graph.tuple_get"(%s) {{index = {i} : i64}} : ({whole}) -> {kind}'
        lines.append(f"%e{i} = {get}")
    # Elements change places by two, so that each keeps its kind.
    turned = [f"%e{(i + 2) % count if count % 2 == 0 else i}" for i in range(count)]
    lines += [f"%u = {op('tuple', turned, kinds, [whole])}", f"scf.yield %u : {whole}", "}"]
    lines.append(returned(["%r"], [whole]))
    return function("@carried", kinds, [whole], "\n".join(lines))


def told(count: int) -> str:
    """An assertion and a tensor program's call with many operands."""
    types = [rows(1)] * count
    operands = [f"%a{i}" for i in range(count)]
    stacked = f'tensor<?x{count}x1xf32, #graph.shape<["n", {count}, 1]>>'
    text = 'format = "' + "{}" * count + '"'
    stack = op("stack", operands, types, [stacked], "axis = 1 : i64")
    lines = ["%true = arith.constant true"]
    lines.append(op("assert", ["%true", *operands], ["i1", *types], [], text))
    lines += [f"%0 = {stack}", returned(["%0"], [stacked])]
    return function("@told", types, [stacked], "\n".join(lines))


LIBRARY = """
"lib.function"() {sym_name = "mine", c_symbol = "test.many", convention = "dlpack",
                  libraries = ["python"]} : () -> ()
"""
TEXT = joined(37) + called(70, 19) + carried(40) + told(33)


@pytest.fixture(scope="module", params=LEVELS)
def exe(request: pytest.FixtureRequest) -> relax_mlir.Executable:
    return relax_mlir.compile(TEXT, opt_level=request.param)


def widths(count: int, rows: int = 5) -> list[np.ndarray]:
    random = np.random.default_rng(count)
    return [random.standard_normal((rows, i % 3 + 1)).astype(np.float32) for i in range(count)]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_many_tensors_are_joined(exe: relax_mlir.Executable, count: int) -> None:
    arrays = widths(37, count)
    np.testing.assert_array_equal(exe["joined"](*arrays), np.concatenate(arrays, axis=1))


def test_functions_and_closures_take_and_return_many(exe: relax_mlir.Executable) -> None:
    arrays, last = widths(70), [i + 3 * ((69 - i) // 3) for i in range(19)]
    for i, result in enumerate(exe["called"](*arrays)):
        np.testing.assert_array_equal(result, arrays[i] + arrays[last[i]])


def test_tuples_have_many_elements(exe: relax_mlir.Executable) -> None:
    arrays = [np.full((2, 2), i, np.float32) if i % 2 else i + 3 for i in range(40)]
    results = exe["carried"](*arrays)
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, arrays[(i + 2 * 3) % 40])


@pytest.mark.parametrize("opt_level", [0, 3])
def test_python_functions_take_and_return_many(opt_level: int) -> None:
    types, results = [rows(i % 3 + 1) for i in range(41)], [rows(i % 3 + 1) for i in range(11)]
    attributes = "callee = @mine, sym_args = #graph.shape<[]>"
    call = op("call_dps_library", [f"%a{i}" for i in range(41)], types, results, attributes)
    ends = returned([f"%r#{i}" for i in range(11)], results)
    text = LIBRARY + function("@main", types, results, f"%r:11 = {call}\n{ends}")
    relax_mlir.register_function("test.many", lambda *arrays: [2 * a for a in arrays[30:41]])
    arrays = widths(41)
    outputs = relax_mlir.compile(text, opt_level=opt_level)["main"](*arrays)
    for i, result in enumerate(outputs):
        np.testing.assert_array_equal(result, 2 * arrays[30 + i])


def test_stacks_and_assertions_have_many_operands(exe: relax_mlir.Executable) -> None:
    arrays = [np.full((2, 1), i, np.float32) for i in range(33)]
    np.testing.assert_array_equal(exe["told"](*arrays), np.stack(arrays, axis=1))


def test_the_interpreter_agrees_after_each_pass() -> None:
    with make_context(), ir.Location.unknown():
        module = parse_module(TEXT)
        checks = Equivalence(module)
        assert set(checks.compared) == {"joined", "called", "carried", "told"}
        Pipeline.parse(pipeline(opt_level=3)).run(module, after_each=checks.check)


def test_bytecode_and_text_have_them() -> None:
    with make_context(), ir.Location.unknown():
        written = io.BytesIO()
        parse_module(joined(33)).operation.write_bytecode(written)
    with make_context(), ir.Location.unknown():
        module = parse_module(written.getvalue())
        concat = module.body.operations[0].entry_block.operations[0]
        assert isinstance(concat, ConcatOp)
        assert len(concat.ins) == 33
        assert arities.plain_name(concat.operation) == "graph.concat"


@pytest.mark.parametrize("arity", ["2to1", "32to8", "032to9", "33to01", "65537to1", "33to70000"])
def test_other_arities_are_unknown(arity: str) -> None:
    text = f'"graph.concat_{arity}"() {{axis = 0 : i64}} : () -> ()'
    with pytest.raises(CompileError, match="unregistered operation"):
        relax_mlir.compile("// " + "x" * 200_000 + "\n" + text)


def test_short_text_declares_no_long_ops() -> None:
    with make_context() as context, ir.Location.unknown():
        arities.declare_used('"graph.concat_60000to1"')
        assert not context.is_registered_operation("graph.concat_60000to1")


def test_untrusted_modules_open_no_library_through_them() -> None:
    types = [rows(1)] * 40
    attributes = "callee = @mine, sym_args = #graph.shape<[]>"
    call = op("call_library", [f"%a{i}" for i in range(40)], types, [], attributes)
    text = LIBRARY + function("@main", types, [types[0]], f"{call}\nreturn %a0 : {types[0]}")
    with pytest.raises(CompileError, match=r"'graph.call_library_40to0' op opens a library"):
        relax_mlir.compile(text, untrusted=True)
