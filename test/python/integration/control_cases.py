"""Functions with branches and loops, and what they mean in NumPy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

N, M, OPEN = (
    f"tensor<?xf32{dim}>" for dim in (', #graph.shape<["n"]>', ', #graph.shape<["m"]>', "")
)
CONSTANTS = "".join(f"  %c{i} = arith.constant {i} : index\n" for i in (0, 1, 2, 3, 8))


SHAPE = '!graph.shape_value<["?"]>'


def slots(operands: int, results: int = 1) -> str:
    """The attributes that say how many operands and results an op has."""
    counts = (
        f"{name}SegmentSizes = array<i32: {', '.join(['1'] * used + ['0'] * (room - used))}>"
        for name, used, room in (("operand", operands, 32), ("result", results, 8))
    )
    return ", ".join(counts)


def add(a: str, b: str, type_: str = N, other: str | None = None) -> str:
    return f'"graph.add"({a}, {b}) : ({type_}, {other or type_}) -> {type_}'


def concat(a: str, b: str, other: str = OPEN) -> str:
    attributes = f"{{axis = 0 : i64, {slots(2)}}}"
    return f'"graph.concat"({a}, {b}) {attributes} : ({OPEN}, {other}) -> {OPEN}'


def cast(value: str, before: str = N, after: str = OPEN) -> str:
    return f'"graph.match_cast"({value}) : ({before}) -> {after}'


def call(callee: str, operands: str, types: str, results: str, num_results: int = 1) -> str:
    attributes = f"{{callee = @{callee}, {slots(operands.count('%'), num_results)}}}"
    return f'"graph.call"({operands}) {attributes} : ({types}) -> ({results})'


class Case(NamedTuple):
    """A function: its arguments and results, its body, what it means, and sets of arguments."""

    signature: str
    body: str
    meaning: Callable[..., Any]
    calls: list[tuple[Any, ...]]


def numbers(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([n, seed]).integers(-4, 5, n).astype(np.float32)


VECTORS = [(numbers(n),) for n in (0, 1, 7)]
PAIRS = [(numbers(n), numbers(n, 1)) for n in (0, 1, 2, 13)]


def scaled(x: np.ndarray, factor: float) -> np.ndarray:
    return x * np.float32(factor)


def doubled_until(x: np.ndarray) -> np.ndarray:
    x = np.abs(x) + 1
    while len(x) and x.sum() < 100:
        x = x + x
    return x


def shifted(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    a, b, c = x, y, x
    for _ in range(3):
        a, b, c = b, a + b, a
    return a, b, c


def nested(x: np.ndarray) -> np.ndarray:
    total = x
    for i in range(len(x)):
        for j in range(i):
            total = total + x if j == 1 else total
    return total


def with_inserted(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = x.copy()
    for i in range(len(x)):
        y[i] = x[i] * x[i] + (y[i - 1] if i else 0)
    return y, x


def generations(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(4):
        x, y = y, np.concatenate([y, x])
    return x, y


def grown(x: np.ndarray) -> np.ndarray:
    while len(x) < 8:
        x = np.concatenate([x, x, x[:1]])
    return x


CASES = {
    "branch_on_dim": Case(
        f"(%x: {N}, %y: {N}) -> {N}",
        f"""
  %d = tensor.dim %x, %c0 : {N}
  %c = arith.cmpi slt, %d, %c3 : index
  %r = scf.if %c -> {N} {{
    %0 = {add("%x", "%y")}
    scf.yield %0 : {N}
  }} else {{
    scf.yield %x : {N}
  }}
  return %r : {N}""",
        lambda x, y: x + y if len(x) < 3 else x,
        PAIRS,
    ),
    "branch_on_boolean": Case(
        f"(%c: i1, %b: tensor<i1>, %x: {N}) -> {N}",
        f"""
  %e = tensor.extract %b[] : tensor<i1>
  %both = arith.andi %c, %e : i1
  %r = scf.if %both -> {N} {{
    %0 = {add("%x", "%x")}
    scf.yield %0 : {N}
  }} else {{
    scf.yield %x : {N}
  }}
  return %r : {N}""",
        lambda c, b, x: x + x if c and b else x,
        [(c, np.array(b), numbers(5)) for c in (True, False) for b in (True, False)],
    ),
    "branch_on_element": Case(
        "(%x: tensor<4xf32>) -> tensor<4xf32>",
        """
  %zero = arith.constant 0.0 : f32
  %e = tensor.extract %x[%c1] : tensor<4xf32>
  %c = arith.cmpf ogt, %e, %zero : f32
  %r = scf.if %c -> tensor<4xf32> {
    %0 = "graph.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>""",
        lambda x: -x if x[1] > 0 else x,
        [(np.array([1, e, 3, 4], np.float32),) for e in (-2, 0, 2, np.nan)],
    ),
    "branch_needs_agreement": Case(
        f"(%x: {N}, %y: {M}) -> {N}",
        f"""
  %d = tensor.dim %x, %c0 : {N}
  %c = arith.cmpi slt, %d, %c8 : index
  %r = scf.if %c -> {N} {{
    %0 = {add("%x", "%y", N, M)}
    scf.yield %0 : {N}
  }} else {{
    scf.yield %x : {N}
  }}
  return %r : {N}""",
        lambda x, y: x + y if len(x) < 8 else x,
        [*PAIRS[:3], (numbers(9), numbers(3))],
    ),
    "branches_of_other_dims": Case(
        f"(%x: {N}, %y: {M}) -> {OPEN}",
        f"""
  %d = tensor.dim %x, %c0 : {N}
  %c = arith.cmpi slt, %d, %c3 : index
  %x1 = {cast("%x")}
  %y1 = {cast("%y", M)}
  %r = scf.if %c -> {OPEN} {{
    scf.yield %x1 : {OPEN}
  }} else {{
    scf.yield %y1 : {OPEN}
  }}
  %0 = {add("%r", "%r", OPEN)}
  return %0 : {OPEN}""",
        lambda x, y: scaled(x if len(x) < 3 else y, 2),
        [(numbers(2), numbers(7)), (numbers(5), numbers(1)), (numbers(0), numbers(3))],
    ),
    "count": Case(
        f"(%x: {N}, %y: {N}) -> {N}",
        f"""
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> {N} {{
    %0 = {add("%a", "%y")}
    %1 = "graph.nn_relu"(%0) : ({N}) -> {N}
    scf.yield %1 : {N}
  }}
  return %r : {N}""",
        lambda x, y: np.maximum(np.maximum(np.maximum(x + y, 0) + y, 0) + y, 0),
        PAIRS,
    ),
    "count_and_need_the_first": Case(
        f"(%x: {N}) -> {N}",
        f"""
  %0 = "graph.negative"(%x) : ({N}) -> {N}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %0) -> {N} {{
    %1 = {add("%a", "%0")}
    %2 = "graph.nn_relu"(%1) : ({N}) -> {N}
    scf.yield %2 : {N}
  }}
  return %r : {N}""",
        lambda x: np.maximum(-4 * x, 0),
        VECTORS,
    ),
    "count_to_element": Case(
        f"(%x: {N}, %k: tensor<i64>) -> {N}",
        f"""
  %e = tensor.extract %k[] : tensor<i64>
  %u = arith.index_cast %e : i64 to index
  %r = scf.for %i = %c0 to %u step %c1 iter_args(%a = %x) -> {N} {{
    %0 = {add("%a", "%x")}
    scf.yield %0 : {N}
  }}
  return %r : {N}""",
        lambda x, k: scaled(x, 1 + max(0, k)),
        [(numbers(n), k) for n, k in ((7, 3), (7, 0), (0, 2), (3, -1))],
    ),
    "count_nested": Case(
        f"(%x: {N}) -> {N}",
        f"""
  %d = tensor.dim %x, %c0 : {N}
  %r = scf.for %i = %c0 to %d step %c1 iter_args(%a = %x) -> {N} {{
    %q = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> {N} {{
      %c = arith.cmpi eq, %j, %c1 : index
      %s = scf.if %c -> {N} {{
        %0 = {add("%b", "%x")}
        scf.yield %0 : {N}
      }} else {{
        scf.yield %b : {N}
      }}
      scf.yield %s : {N}
    }}
    scf.yield %q : {N}
  }}
  return %r : {N}""",
        nested,
        VECTORS,
    ),
    "rotate_what_is_carried": Case(
        f"(%x: {N}, %y: {N}) -> ({N}, {N}, {N})",
        f"""
  %r:3 = scf.for %i = %c0 to %c3 step %c1
      iter_args(%a = %x, %b = %y, %c = %x) -> ({N}, {N}, {N}) {{
    %0 = {add("%a", "%b")}
    scf.yield %b, %0, %a : {N}, {N}, {N}
  }}
  return %r#0, %r#1, %r#2 : {N}, {N}, {N}""",
        shifted,
        PAIRS,
    ),
    "product_in_loop": Case(
        "(%x: tensor<?x8xf32, #graph.shape<['n', 8]>>, %w: tensor<8x8xf32>)"
        " -> tensor<?x8xf32, #graph.shape<['n', 8]>>".replace("'", '"'),
        """
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> !v {
    %0 = "graph.matmul"(%a, %w) : (!v, tensor<8x8xf32>) -> !v
    %1 = "graph.nn_relu"(%0) : (!v) -> !v
    scf.yield %1 : !v
  }
  return %r : !v""".replace("!v", 'tensor<?x8xf32, #graph.shape<["n", 8]>>'),
        lambda x, w: np.maximum(np.maximum(x @ w, 0) @ w, 0),
        [(numbers(8 * n).reshape(n, 8), numbers(64, 1).reshape(8, 8)) for n in (0, 1, 5)],
    ),
    "while_sum": Case(
        f"(%x: {N}) -> {N}",
        f"""
  %one = arith.constant dense<1.0> : tensor<f32>
  %limit = arith.constant 100.0 : f32
  %n = tensor.dim %x, %c0 : {N}
  %some = arith.cmpi ne, %n, %c0 : index
  %0 = "graph.abs"(%x) : ({N}) -> {N}
  %1 = {add("%0", "%one", N, "tensor<f32>")}
  %r = scf.while (%a = %1) : ({N}) -> {N} {{
    %s = "graph.sum"(%a) {{axes = array<i64: 0>, keepdims = false}} : ({N}) -> tensor<f32>
    %e = tensor.extract %s[] : tensor<f32>
    %small = arith.cmpf olt, %e, %limit : f32
    %c = arith.andi %small, %some : i1
    scf.condition(%c) %a : {N}
  }} do {{
  ^body(%a: {N}):
    %2 = {add("%a", "%a")}
    scf.yield %2 : {N}
  }}
  return %r : {N}""",
        doubled_until,
        VECTORS,
    ),
    "while_counter": Case(
        f"(%x: {N}) -> ({N}, index)",
        f"""
  %r:2 = scf.while (%a = %x, %i = %c0) : ({N}, index) -> ({N}, index) {{
    %c = arith.cmpi slt, %i, %c3 : index
    scf.condition(%c) %a, %i : {N}, index
  }} do {{
  ^body(%a: {N}, %i: index):
    %0 = {add("%a", "%x")}
    %j = arith.addi %i, %c1 : index
    scf.yield %0, %j : {N}, index
  }}
  return %r#0, %r#1 : {N}, index""",
        lambda x: (scaled(x, 4), 3),
        VECTORS,
    ),
    "switch_on_element": Case(
        f"(%x: {N}, %k: tensor<i32>) -> {N}",
        f"""
  %e = tensor.extract %k[] : tensor<i32>
  %u = arith.index_cast %e : i32 to index
  %r = scf.index_switch %u -> {N}
  case 2 {{
    %0 = {add("%x", "%x")}
    scf.yield %0 : {N}
  }}
  case -1 {{
    %0 = "graph.negative"(%x) : ({N}) -> {N}
    scf.yield %0 : {N}
  }}
  default {{
    scf.yield %x : {N}
  }}
  return %r : {N}""",
        lambda x, k: {2: x + x, -1: -x}.get(k, x),
        [(numbers(5), k) for k in (2, -1, 0, 3)],
    ),
    "carry_scalars": Case(
        f"(%x: {N}) -> ({N}, tensor<f32>, f32, index)",
        f"""
  %one = arith.constant 1.0 : f32
  %r:3 = scf.for %i = %c0 to %c3 step %c1
      iter_args(%a = %x, %t = %one, %j = %c0) -> ({N}, f32, index) {{
    %w = tensor.from_elements %t : tensor<f32>
    %0 = {add("%a", "%w", N, "tensor<f32>")}
    %t2 = arith.addf %t, %t : f32
    %j2 = arith.addi %j, %i : index
    scf.yield %0, %t2, %j2 : {N}, f32, index
  }}
  %f = tensor.from_elements %r#1 : tensor<f32>
  return %r#0, %f, %r#1, %r#2 : {N}, tensor<f32>, f32, index""",
        lambda x: (x + 7, np.float32(8), 8.0, 3),
        VECTORS,
    ),
    "insert_elements": Case(
        f"(%x: {N}) -> ({N}, {N})",
        f"""
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : {N}
  %r:2 = scf.for %i = %c0 to %d step %c1 iter_args(%y = %x, %last = %zero) -> ({N}, f32) {{
    %e = tensor.extract %x[%i] : {N}
    %s = arith.mulf %e, %e : f32
    %t = arith.addf %s, %last : f32
    %z = tensor.insert %t into %y[%i] : {N}
    scf.yield %z, %t : {N}, f32
  }}
  return %r#0, %x : {N}, {N}""",
        with_inserted,
        VECTORS,
    ),
    "grow_by_rounds": Case(
        f"(%x: {N}) -> {OPEN}",
        f"""
  %0 = {cast("%x")}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %0) -> {OPEN} {{
    %1 = {concat("%a", "%x", N)}
    scf.yield %1 : {OPEN}
  }}
  return %r : {OPEN}""",
        lambda x: np.tile(x, 4),
        VECTORS,
    ),
    "grow_two": Case(
        f"(%x: {N}, %y: {M}) -> ({OPEN}, {OPEN})",
        f"""
  %0 = {cast("%x")}
  %1 = {cast("%y", M)}
  %r:2 = scf.for %i = %c0 to %c8 step %c2 iter_args(%a = %0, %b = %1) -> ({OPEN}, {OPEN}) {{
    %2 = {concat("%b", "%a")}
    scf.yield %b, %2 : {OPEN}, {OPEN}
  }}
  return %r#0, %r#1 : {OPEN}, {OPEN}""",
        generations,
        [(numbers(n), numbers(m, 1)) for n, m in ((0, 0), (3, 0), (1, 2))],
    ),
    "grow_until": Case(
        f"(%x: {N}) -> {OPEN}",
        f"""
  %0 = {cast("%x")}
  %r = scf.while (%a = %0) : ({OPEN}) -> {OPEN} {{
    %d = tensor.dim %a, %c0 : {OPEN}
    %c = arith.cmpi slt, %d, %c8 : index
    scf.condition(%c) %a : {OPEN}
  }} do {{
  ^body(%a: {OPEN}):
    %1 = {concat("%a", "%a")}
    %first = tensor.extract %a[%c0] : {OPEN}
    %2 = tensor.from_elements %first : tensor<1xf32>
    %3 = {concat("%1", "%2", "tensor<1xf32>")}
    scf.yield %3 : {OPEN}
  }}
  return %r : {OPEN}""",
        grown,
        [(numbers(n),) for n in (1, 2, 3, 9)],
    ),
    "dims_of_elements": Case(
        f"(%x: {N}, %i: index) -> {OPEN}",
        f"""
  %d = tensor.dim %x, %c0 : {N}
  %half = arith.divsi %d, %c2 : index
  %c = arith.cmpi sgt, %i, %half : index
  %own = "graph.shape_of"(%x) : ({N}) -> !graph.shape_value<["n"]>
  %all = {cast("%own", '!graph.shape_value<["n"]>', SHAPE)}
  %s = scf.if %c -> {SHAPE} {{
    %e = tensor.from_elements %half : tensor<1xindex>
    %0 = "graph.tensor_to_shape"(%e) : (tensor<1xindex>) -> {SHAPE}
    scf.yield %0 : {SHAPE}
  }} else {{
    scf.yield %all : {SHAPE}
  }}
  %1 = {cast("%s", SHAPE, '!graph.shape_value<["m"]>')}
  %2 = "graph.strided_slice"(%x) {{axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["m"]>, strides = array<i64: 1>}} : ({N}) -> {M}
  %3 = {cast("%2", M)}
  return %3 : {OPEN}""",
        lambda x, i: x[: len(x) // 2] if i > len(x) // 2 else x,
        [(numbers(n), i) for n in (0, 1, 7) for i in (0, 4)],
    ),
    "carry_shape": Case(
        f"(%x: {N}, %k: i8) -> {OPEN}",
        f"""
  %zero = arith.constant 0 : i8
  %one = arith.constant 1 : i8
  %own = "graph.shape_of"(%x) : ({N}) -> !graph.shape_value<["n"]>
  %begin = {cast("%own", '!graph.shape_value<["n"]>', SHAPE)}
  %r = scf.for %j = %zero to %k step %one iter_args(%s = %begin) -> ({SHAPE}) : i8 {{
    %0 = {cast("%s", SHAPE, '!graph.shape_value<["m"]>')}
    %1 = "graph.make_shape"() {{dims = #graph.shape<["2*m + 1"]>}} :
        () -> !graph.shape_value<["2*m + 1"]>
    %2 = {cast("%1", '!graph.shape_value<["2*m + 1"]>', SHAPE)}
    scf.yield %2 : {SHAPE}
  }}
  %3 = {cast("%r", SHAPE, '!graph.shape_value<["m"]>')}
  %4 = "graph.arange"() {{bounds = #graph.shape<[0, "m", 1]>, dtype = f32}} : () -> {M}
  %5 = {cast("%4", M)}
  return %5 : {OPEN}""",
        lambda x, k: np.arange((len(x) + 1) * 2 ** max(k, 0) - 1, dtype=np.float32),
        [(numbers(n), k) for n in (0, 3) for k in (-1, 0, 3)],
    ),
    "call_in_branch": Case(
        f"(%x: {N}, %f: f32) -> ({N}, f32)",
        f"""
  %d = tensor.dim %x, %c0 : {N}
  %c = arith.cmpi slt, %d, %c8 : index
  %r:2 = scf.if %c -> ({N}, f32) {{
    %0:2 = {call("rounds", "%x, %f, %c3", f"{N}, f32, index", f"{N}, f32", 2)}
    scf.yield %0#0, %0#1 : {N}, f32
  }} else {{
    scf.yield %x, %f : {N}, f32
  }}
  return %r#0, %r#1 : {N}, f32""",
        lambda x, f: (scaled(x, 4), 8 * f) if len(x) < 8 else (x, f),
        [(numbers(n), 1.5) for n in (0, 3, 11)],
    ),
}
CALLED = f"""
func.func private @rounds(%x: {N}, %f: f32, %k: index) -> ({N}, f32)
    attributes {{graph.noinline}} {{
{CONSTANTS}
  %r:2 = scf.for %i = %c0 to %k step %c1 iter_args(%a = %x, %g = %f) -> ({N}, f32) {{
    %0 = {add("%a", "%x")}
    %h = arith.addf %g, %g : f32
    scf.yield %0, %h : {N}, f32
  }}
  return %r#0, %r#1 : {N}, f32
}}"""


def functions(cases: dict[str, Case]) -> str:
    """The text of the functions."""
    return "".join(
        f"\nfunc.func @{name}{case.signature} {{\n{CONSTANTS}{case.body}\n}}"
        for name, case in cases.items()
    )
