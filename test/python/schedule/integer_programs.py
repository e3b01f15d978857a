"""Products of 8-bit integers with 32-bit sums, as graphs and as tensor programs."""

from collections.abc import Sequence

import numpy as np
from scheduled import generic, program


def tensor(dims: Sequence[int | str], element: str) -> str:
    """A tensor type of the graph dialect; names are symbols."""
    shape = "x".join("?" if isinstance(d, str) else str(d) for d in dims)
    names = ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in dims)
    known = all(isinstance(d, int) for d in dims)
    return f"tensor<{shape}x{element}{'' if known else f', #graph.shape<[{names}]>'}>"


def product(
    m: int | str,
    n: int | str,
    k: int | str,
    layout: str = "nk",
    parameters: bool = False,
    elements: tuple[str, str] = ("i8", "i8"),
) -> str:
    """x[m, k] times the transpose of w, which is [n, k] or [k, n]; w may be a parameter."""
    sides = [(m, k), [{"n": n, "k": k}[x] for x in layout]]
    left, right = (tensor(dims, x) for dims, x in zip(sides, elements, strict=True))
    left_i32, right_i32 = (tensor(dims, "i32") for dims in sides)
    transposed, out = tensor((k, n), "i32"), tensor((m, n), "i32")
    transpose = f"""
      %t = "graph.permute_dims"(%r) {{axes = array<i64: 1, 0>}} : ({right_i32}) -> {transposed}"""
    factor = "%t" if layout == "nk" else "%r"
    return f"""
    func.func @main(%x: {left}, %w: {right}) -> {out}
        attributes {{{"graph.num_inputs = 1 : i64" if parameters else ""}}} {{
      %l = "graph.astype"(%x) {{dtype = i32}} : ({left}) -> {left_i32}
      %r = "graph.astype"(%w) {{dtype = i32}} : ({right}) -> {right_i32}
      {transpose if layout == "nk" else ""}
      %y = "graph.matmul"(%l, {factor}) : ({left_i32}, {transposed}) -> {out}
      return %y : {out}
    }}"""


def body(left: str = "extsi", right: str = "extsi", offset: int = 0) -> str:
    """total + ext(a) * (ext(b) + offset)."""
    return f"""
    ^bb0(%a: i8, %b: i8, %s: i32):
      %l = arith.{left} %a : i8 to i32
      %r = arith.{right} %b : i8 to i32
      %o = arith.constant {offset} : i32
      %f = arith.addi %r, %o : i32
      %p = arith.muli %l, %f : i32
      %t = arith.addi %s, %p : i32
      linalg.yield %t : i32"""


def tensor_program(
    body_text: str, left: tuple[str, str], right: tuple[str, str], out: tuple[str, str], loops: str
) -> str:
    """One contraction; sides are (type, indices), loops are letters, of which k is summed over."""
    names = ", ".join(loops)
    maps = [f"({names}) -> ({indices})" for _, indices in (left, right, out)]
    kinds = "".join("r" if loop == "k" else "p" for loop in loops)
    text = f"""
    %zero = arith.constant 7 : i32
    %init = linalg.fill ins(%zero : i32) outs(%y0 : {out[0]}) -> {out[0]}
    {
        generic(
            "%z",
            [("%x0", left[0], maps[0]), ("%x1", right[0], maps[1])],
            [("%init", out[0], maps[2])],
            kinds,
            body_text,
        )
    }
    return %z"""
    return program([left[0], right[0]], [out[0]], text)


def random_bytes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Signed 8-bit integers, with many extremes."""
    elements = rng.integers(-128, 128, shape, dtype=np.int8)
    extremes = rng.choice(np.array([-128, 127], np.int8), shape)
    return np.where(rng.random(shape) < 0.2, extremes, elements)


def exact(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """x times the transpose of w, modulo 2^32 as int32."""
    return (x.astype(np.int64) @ w.astype(np.int64).swapaxes(-1, -2)).astype(np.int32)
