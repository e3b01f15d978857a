"""Loops in loops and in called functions, whose tensors grow, and what they mean in NumPy."""

import numpy as np
from control_cases import OPEN, Case, N, add, call, cast, concat, numbers


def nested(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = x, x
    for i in range(k):
        s, t = a, b
        for _ in range(i):
            s, t = np.concatenate([t, s]), np.concatenate([s, x])
        a, b = (np.concatenate([s, a]) if i == 1 else t), a
    return a, b


def made_before(x: np.ndarray) -> tuple[np.ndarray, int]:
    a = x
    for i in range(4):
        a = np.concatenate([a, x])
        if i < 3:
            a = -a
    return 2 * a, 3


def summed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = x + 4 * x.sum()
    y = first
    for i in range(3):
        y = y + 2**i * y.sum()
    return first, y


NESTED = {
    "grow_nested": Case(
        f"(%x: {N}, %k: index) -> ({OPEN}, {OPEN})",
        f"""
  %0 = {cast("%x")}
  %r:2 = scf.for %i = %c0 to %k step %c1 iter_args(%a = %0, %b = %0) -> ({OPEN}, {OPEN}) {{
    %q:2 = scf.for %j = %c0 to %i step %c1 iter_args(%s = %a, %t = %b) -> ({OPEN}, {OPEN}) {{
      %1 = {concat("%s", "%x", N)}
      %2 = {concat("%t", "%s")}
      scf.yield %2, %1 : {OPEN}, {OPEN}
    }}
    %c = arith.cmpi eq, %i, %c1 : index
    %u = scf.if %c -> {OPEN} {{
      %3 = {concat("%q#0", "%a")}
      scf.yield %3 : {OPEN}
    }} else {{
      scf.yield %q#1 : {OPEN}
    }}
    scf.yield %u, %a : {OPEN}, {OPEN}
  }}
  return %r#0, %r#1 : {OPEN}, {OPEN}""",
        nested,
        [(numbers(n), k) for n, k in ((7, 3), (1, 4), (0, 3), (7, 0))],
    ),
    "grow_before_the_condition": Case(
        f"(%x: {N}) -> ({OPEN}, index)",
        f"""
  %0 = {cast("%x")}
  %r:2 = scf.while (%a = %0, %i = %c0) : ({OPEN}, index) -> ({OPEN}, index) {{
    %b = {concat("%a", "%x", N)}
    %c = arith.cmpi slt, %i, %c3 : index
    scf.condition(%c) %b, %i : {OPEN}, index
  }} do {{
  ^body(%a: {OPEN}, %i: index):
    %1 = "graph.negative"(%a) : ({OPEN}) -> {OPEN}
    %j = arith.addi %i, %c1 : index
    scf.yield %1, %j : {OPEN}, index
  }}
  %2 = {add("%r#0", "%r#0", OPEN)}
  return %2, %r#1 : {OPEN}, index""",
        made_before,
        [(numbers(n),) for n in (0, 1, 7)],
    ),
    "grow_in_a_called_function": Case(
        f"(%x: {N}) -> ({N}, {N})",
        f"""
  %0 = {call("doubled", "%x, %c2", f"{N}, index", N)}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %0) -> {N} {{
    %1 = {call("doubled", "%a, %i", f"{N}, index", N)}
    scf.yield %1 : {N}
  }}
  return %0, %r : {N}, {N}""",
        summed,
        [(numbers(n),) for n in (0, 1, 7)],
    ),
}
DOUBLED = f"""
func.func private @doubled(%x: {N}, %k: index) -> {N} attributes {{graph.noinline}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = {cast("%x")}
  %r = scf.for %i = %c0 to %k step %c1 iter_args(%a = %0) -> {OPEN} {{
    %1 = {concat("%a", "%a")}
    scf.yield %1 : {OPEN}
  }}
  %s = "graph.sum"(%r) {{axes = array<i64: 0>, keepdims = true}} : ({OPEN}) -> tensor<1xf32>
  %y = {add("%x", "%s", N, "tensor<1xf32>")}
  return %y : {N}
}}"""
