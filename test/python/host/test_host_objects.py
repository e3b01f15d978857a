"""Objects of the host program, and texts, that modules hand to functions of Python."""

import gc
import os
import signal
import threading
import weakref
from typing import ClassVar

import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

V = "!graph.host_object"
X = 'tensor<?xf32, #graph.shape<["n"]>>'
WAYS = [*LEVELS, "interpreted"]


def declared(name: str, more: str = "", library: str = "python") -> str:
    return (
        f'"lib.function"() {{sym_name = "{name}", c_symbol = "objects.{name}", '
        f'convention = "dlpack", libraries = ["{library}"]{more}}} : () -> ()\n'
    )


def call(name: str, operands: str, types: str, outs: int = 1, op: str = "call_library") -> str:
    ins = len(operands.split(",")) if operands else 0
    symbols = "" if op == "call" else "sym_args = #graph.shape<[]>, "
    attributes = f"callee = @{name}, {symbols}{segments(ins, outs)}"
    return f'"graph.{op}"({operands}) {{{attributes}}} : {types}\n'


MODULE = (
    declared("make")
    + declared("grow")
    + declared("read")
    + f"""
func.func private @twice(%o: {V}) -> {V} attributes {{graph.noinline}} {{
  %0 = {call("grow", "%o", f"({V}) -> {V}")}
  %1 = {call("grow", "%0", f"({V}) -> {V}")}
  return %1 : {V}
}}
func.func private @choose(%t: tuple<{V}, tuple<{V}, i1>>) -> tuple<{V}> {{
  %a = "graph.tuple_get"(%t) {{index = 0 : i64}} : (tuple<{V}, tuple<{V}, i1>>) -> {V}
  %r = "graph.tuple_get"(%t) {{index = 1 : i64}} : (tuple<{V}, tuple<{V}, i1>>) -> tuple<{V}, i1>
  %b = "graph.tuple_get"(%r) {{index = 0 : i64}} : (tuple<{V}, i1>) -> {V}
  %c = "graph.tuple_get"(%r) {{index = 1 : i64}} : (tuple<{V}, i1>) -> i1
  %s = scf.if %c -> {V} {{
    scf.yield %a : {V}
  }} else {{
    %0 = {call("twice", "%b", f"({V}) -> {V}", op="call")}
    scf.yield %0 : {V}
  }}
  %o = "graph.tuple"(%s) {{{segments(1, 1)}}} : ({V}) -> tuple<{V}>
  return %o : tuple<{V}>
}}
func.func @main(%x: {X}, %o: {V} {{graph.name = "o"}}, %c: i1, %k: index) -> ({X}, {V}, {V}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %made = {call("make", "%x", f"({X}) -> {V}")}
  %i = "graph.tuple"(%o, %c) {{{segments(2, 1)}}} : ({V}, i1) -> tuple<{V}, i1>
  %t = "graph.tuple"(%made, %i) {{{segments(2, 1)}}}
    : ({V}, tuple<{V}, i1>) -> tuple<{V}, tuple<{V}, i1>>
  %p = {call("choose", "%t", f"(tuple<{V}, tuple<{V}, i1>>) -> tuple<{V}>", op="call")}
  %q = "graph.tuple_get"(%p) {{index = 0 : i64}} : (tuple<{V}>) -> {V}
  %last = scf.for %j = %zero to %k step %one iter_args(%s = %q) -> {V} {{
    %0 = {call("grow", "%s", f"({V}) -> {V}")}
    scf.yield %0 : {V}
  }}
  %y = {call("read", "%last,%x", f"({V}, {X}) -> {X}")}
  %z = "graph.exp"(%y) : ({X}) -> {X}
  return %z, %last, %o : {X}, {V}, {V}
}}
"""
)


class Counted:
    """A number; all that are alive are in `alive`."""

    alive: ClassVar["weakref.WeakSet[Counted]"] = weakref.WeakSet()

    def __init__(self, number: float) -> None:
        self.number = number
        Counted.alive.add(self)


def register() -> None:
    relax_mlir.register_function("objects.make", lambda x: Counted(float(x.sum())))
    relax_mlir.register_function("objects.grow", lambda o: Counted(o.number + 1))
    relax_mlir.register_function("objects.read", lambda o, x: x + np.float32(o.number))


def living() -> int:
    gc.collect()
    return len(Counted.alive)


@pytest.fixture(scope="module")
def main() -> dict:
    """The function at every level, and interpreted."""
    built = {level: relax_mlir.compile(MODULE, opt_level=level)["main"] for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(MODULE)["main"]}


@pytest.fixture(autouse=True)
def functions() -> None:
    register()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "taken", "rounds"), [(0, True, 0), (3, False, 1), (17, True, 5)])
def test_objects_pass_through(main, way, n, taken, rounds):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32) / 8
    before, own = living(), Counted(1.5)
    y, last, same = main[way](x, own, taken, rounds)
    want = (float(x.sum()) if taken else 3.5) + rounds
    assert same is own
    assert last.number == pytest.approx(want, rel=1e-6)
    np.testing.assert_allclose(y, np.exp(x.astype(float) + want), rtol=1e-5)
    assert living() == before + 2 - (last is own)
    del last, same, own
    assert living() == before


@pytest.mark.parametrize("way", [LEVELS[1], "interpreted"])
@pytest.mark.parametrize("kind", [(1, 2), [], None, "text", np.arange(3), float("nan")])
def test_any_object_is_one(way, kind):
    text = declared("id") + (
        f"func.func @main(%o: {V}) -> {V} {{\n  %0 = {call('id', '%o', f'({V}) -> {V}')}"
        f"  return %0 : {V}\n}}"
    )
    relax_mlir.register_function("objects.id", lambda o: o)
    function = built(text, way)
    assert function(kind) is kind
    assert function.bind(kind).run() is kind
    assert str(function) == "main(arg0: object) -> (object)"


def built(text: str, way):
    if way == "interpreted":
        return relax_mlir.interpret(text)["main"]
    return relax_mlir.compile(text, opt_level=way)["main"]


CLOSURE = (
    declared("grow")
    + f"""
func.func private @apply(%f: ({V}) -> {V}, %o: {V}) -> {V} {{
  %0 = "graph.invoke_closure"(%f, %o) {{{segments(2, 1)}}} : (({V}) -> {V}, {V}) -> {V}
  return %0 : {V}
}}
func.func private @later(%kept: {V}, %o: {V}) -> {V} {{
  %0 = {call("grow", "%kept", f"({V}) -> {V}")}
  return %0 : {V}
}}
func.func @main(%a: {V}, %b: {V}) -> {V} {{
  %f = "graph.make_closure"(%a) {{callee = @later, {segments(1, 1)}}} : ({V}) -> (({V}) -> {V})
  %0 = {call("apply", "%f,%b", f"(({V}) -> {V}, {V}) -> {V}", op="call")}
  return %0 : {V}
}}
"""
)


@pytest.mark.parametrize("way", [LEVELS[1], "interpreted"])
def test_closures_capture_objects(way):
    assert built(CLOSURE, way)(Counted(1), Counted(5)).number == 2
    wrong = CLOSURE.replace(f"%f: ({V}) -> {V}, %o", f"%f: (tensor<i64>) -> {V}, %o")
    wrong = wrong.replace(
        f": (({V}) -> {V}, {V}) -> {V}",
        f": ((tensor<i64>) -> {V}, {V}) -> {V}",
        1,
    )
    with pytest.raises(CompileError, match="where the function has 'tensor<i64>'"):
        relax_mlir.compile(wrong)


RECURSIVE = (
    declared("grow")
    + f"""
func.func private @down(%k: index, %o: {V}) -> {V} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = arith.cmpi eq, %k, %zero : index
  %r = scf.if %c -> {V} {{
    scf.yield %o : {V}
  }} else {{
    %0 = {call("grow", "%o", f"({V}) -> {V}")}
    %1 = arith.subi %k, %one : index
    %2 = {call("down", "%1,%0", f"(index, {V}) -> {V}", op="call")}
    scf.yield %2 : {V}
  }}
  return %r : {V}
}}
func.func @main(%k: index, %o: {V}) -> {V} {{
  %0 = {call("down", "%k,%o", f"(index, {V}) -> {V}", op="call")}
  return %0 : {V}
}}
"""
)


@pytest.mark.parametrize("way", WAYS)
def test_recursion_passes_objects_down(way):
    before = living()
    assert built(RECURSIVE, way)(9, Counted(1)).number == 10
    assert living() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_call_releases_its_objects(main, way):
    def fails(o, x):
        raise ValueError("no")

    relax_mlir.register_function("objects.read", fails)
    before = living()
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            main[way](np.ones(3, np.float32), Counted(0), False, 4)
    assert living() == before


def test_an_interrupted_call_releases_its_objects(main):
    def interrupted(o):
        signal.raise_signal(signal.SIGINT)
        return Counted(o.number + 1)

    relax_mlir.register_function("objects.grow", interrupted)
    before = living()
    # Shells start processes in the background with a handler that ignores the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            main[LEVELS[1]](np.ones(3, np.float32), Counted(0), True, 10**4)
    finally:
        signal.signal(signal.SIGINT, handler)
    register()
    assert living() == before
    assert main[LEVELS[1]](np.ones(3, np.float32), Counted(0), True, 1)[1].number == 4


def test_bound_calls_hold_their_arguments(main):
    before = living()
    bound = main[LEVELS[1]].bind(np.ones(2, np.float32), Counted(1), True, 1)
    assert living() == before + 1
    assert bound.run()[1].number == bound.run()[1].number == 3
    assert living() == before + 1
    other = Counted(5)
    bound.set(1, other)
    assert living() == before + 1
    assert bound.run()[2] is other
    assert bound.values[1] is other
    with pytest.raises(ExecutionError, match="result 1: is an object, for which there is no"):
        main[LEVELS[1]].bind(np.ones(2, np.float32), other, True, 1, results=[None, other, None])
    del bound, other
    assert living() == before


def test_threads_and_nested_calls_have_objects_of_their_own(main):
    inner = main[LEVELS[0]]
    x = np.ones(2, np.float32)

    def grow(o):
        if o.number > 100:
            return Counted(o.number + 1)
        return Counted(inner(x, Counted(o.number + 1000), False, 1)[1].number - 1000)

    relax_mlir.register_function("objects.grow", grow)
    found: dict[int, list[float]] = {}

    def run(number: int) -> None:
        bound = main[LEVELS[1]].bind(x, Counted(number), False, 3)
        found[number] = [bound.run()[1].number for _ in range(20)]

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Five rounds of three each.
    assert found == {number: [number + 15.0] * 20 for number in range(4)}


def test_a_forked_child_makes_the_calls_of_its_parent(main):
    bound = main[LEVELS[1]].bind(np.ones(2, np.float32), Counted(7), False, 2)
    want = bound.run()[1].number
    child = os.fork()
    if not child:
        os._exit(0 if bound.run()[1].number == want else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_function_that_writes_returns_no_object(main):
    relax_mlir.register_function("objects.make", lambda x, o: None, writes=True)
    with pytest.raises(ExecutionError, match=r"'objects\.make' is to return an object"):
        main[LEVELS[1]](np.ones(2, np.float32), Counted(0), True, 0)


FORGED = (
    declared("read", ", lib.host_operands = array<i64: 0>")
    + f"func.func @main(%k: tensor<i64>, %x: {X}) -> {X} {{\n"
    + f"  %0 = {call('read', '%k,%x', f'(tensor<i64>, {X}) -> {X}')}  return %0 : {X}\n}}"
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("handle", [0, -1, 1, 2**62])
def test_a_number_is_no_handle(way, handle):
    with pytest.raises(ExecutionError, match=f"the call has no object of the handle {handle}"):
        built(FORGED, way)(np.int64(handle), np.ones(3, np.float32))


@pytest.mark.parametrize("way", [LEVELS[0], "interpreted"])
def test_other_tensors_are_no_handles(way):
    text = FORGED.replace("tensor<i64>", "tensor<f32>")
    with pytest.raises((CompileError, ExecutionError), match="hands"):
        built(text, way)(np.float32(0), np.ones(3, np.float32))


@pytest.mark.parametrize("way", [LEVELS[0], "interpreted"])
def test_marks_on_other_tensors_are_ignored(way):
    text = (
        "func.func @main(%x: tensor<4xf32> {graph.host_object}) -> tensor<4xf32>\n"
        "    attributes {graph.host_results = array<i64: 0, 7>} {\n  return %x : tensor<4xf32>\n}"
    )
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(built(text, way)(x), x)


def module(body: str, arguments: str = f"%o: {V}", more: str = "", results: str = "") -> str:
    return (
        declared("make")
        + declared("grow")
        + declared("read")
        + declared("c", library="libm.so.6")
        + f"func.func @main({arguments}){results} {{\n  {body}\n  return\n}}\n{more}"
    )


REFUSED = [
    (
        module(f'%0 = "graph.exp"(%o) : ({V}) -> tensor<4xf32>'),
        r"'graph.exp' op takes or makes an object of the host program, which only",
    ),
    (
        module(f'%0 = "graph.match_cast"(%o) : ({V}) -> tensor<i64>'),
        r"asserts 'tensor<i64>', which '!graph.host_object' can never be",
    ),
    (
        module(f'%0 = "graph.match_cast"(%k) : (tensor<i64>) -> {V}', "%k: tensor<i64>"),
        r"asserts '!graph.host_object', which 'tensor<i64>' can never be",
    ),
    (
        module(f'"graph.print"(%o) {{format = "{{}}", {segments(1, 0)}}} : ({V}) -> ()'),
        r"'graph.print' op takes or makes an object",
    ),
    (
        module("%0 = " + call("make", "%o", f"({V}) -> {V}", op="call_dps_library")),
        r"'graph.call_dps_library' op takes or makes an object",
    ),
    (
        module("%0 = " + call("c", "%o", f"({V}) -> {V}")),
        r"hands an object to 'c', which is no function of Python",
    ),
    (
        module(
            "%0 = " + call("f", "%o", f"({V}) -> tensor<i64>", op="call"),
            more=f"func.func private @f(%x: {V}) -> {V} {{\n  return %x : {V}\n}}",
        ),
        r"has 'tensor<i64>' where '@f' has '!graph.host_object'",
    ),
    (
        module(
            "%0 = " + call("f", "%k", f"(tensor<i64>) -> {V}", op="call"),
            "%k: tensor<i64>",
            more=f"func.func private @f(%x: {V}) -> {V} {{\n  return %x : {V}\n}}",
        ),
        r"has 'tensor<i64>' where '@f' has '!graph.host_object'",
    ),
    (
        module(
            f"%0 = scf.if %c -> {V} {{\n scf.yield %o : {V}\n }} else {{\n"
            " scf.yield %k : tensor<i64>\n }",
            f"%o: {V}, %k: tensor<i64>, %c: i1",
        ),
        r"scf.(if|yield)' op",
    ),
    (
        f"func.func @main(%o: {V} {{graph.inout = 0 : i64}}) -> {V} {{\n  return %o : {V}\n}}",
        r"has argument 0, an object, updated in place",
    ),
    (
        f"func.func @main(%o: {V}) attributes {{graph.num_inputs = 0 : i64}} {{\n  return\n}}",
        r"has argument 0, an object, among its parameters",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
@pytest.mark.parametrize("level", [0, 2])
def test_refused(text, message, level):
    with pytest.raises(CompileError, match=message):
        relax_mlir.compile(text, opt_level=level)


# Texts.

TEXTS = ["loss", "", 'quotes " and {} braces', "ä→𝄞", "a\0b"]
QUOTED = ["loss", "", 'quotes \\" and {} braces', "ä→𝄞", "a\\00b"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", ["call_library", "call_dps_library"])
def test_texts_follow_operands(way, op):
    def note(x, *texts):
        seen.append(texts)
        return x * 2

    relax_mlir.register_function("objects.note", note)
    listed = ", ".join(f'"{text}"' for text in QUOTED)
    text = declared("note", f", lib.texts = [{listed}]") + (
        f"func.func @main(%x: {X}) -> {X} {{\n"
        f"  %0 = {call('note', '%x', f'({X}) -> {X}', op=op)}  return %0 : {X}\n}}"
    )
    seen: list[tuple] = []
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(built(text, way)(x), 2 * x)
    assert seen == [tuple(TEXTS)]


@pytest.mark.parametrize("way", [LEVELS[1], "interpreted"])
def test_texts_beside_objects_and_many_operands(way):
    def note(*values):
        seen.append([type(value).__name__ for value in values])
        return values[-1] + str(len(values))

    relax_mlir.register_function("objects.note", note)
    seen: list[list[str]] = []
    count = 31
    arguments = ", ".join([f"%o: {V}", *(f"%x{i}: tensor<f32>" for i in range(count))])
    operands = ",".join(["%o", *(f"%x{i}" for i in range(count))])
    types = ", ".join([V, *["tensor<f32>"] * count])
    texts = ", ".join(['"a"'] * 20)
    text = declared("note", f", lib.texts = [{texts}]") + (
        f"func.func @main({arguments}) -> {V} {{\n"
        f"  %0 = {call('note', operands, f'({types}) -> {V}')}  return %0 : {V}\n}}"
    )
    assert built(text, way)({}, *[np.float32(1)] * count) == "a52"
    assert seen == [["dict", *["ndarray"] * count, *["str"] * 20]]


@pytest.mark.parametrize(
    ("more", "convention", "message"),
    [
        (", lib.texts = [1 : i64]", "dlpack", "expects 'lib.texts' to be an array of texts"),
        (', lib.texts = "a"', "dlpack", "expects 'lib.texts' to be an array of texts"),
        (', lib.texts = ["a"]', "cblas_sgemm_nn", "has 'lib.texts', which functions of the conv"),
        (', lib.texts = ["\\FF"]', "dlpack", "UTF-8"),
        (", lib.host_results = 1 : i64", "dlpack", "expects an array of integers"),
    ],
)
def test_malformed_declarations(more, convention, message):
    text = declared("f", more).replace("dlpack", convention)
    for way in (2, "interpreted"):
        with pytest.raises(CompileError, match=message):
            built(text + "func.func @main() {\n  return\n}", way)
