"""Tensor programs as people write them, by element type and width, for calls in random programs.

Tensors are [p, W] or what `outs` says of p and W; inside of a program they are plain.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Dims = Callable[[Any, int], Sequence[Any]]


def _as_it_is(rows: Any, width: int) -> Sequence[Any]:
    return (rows, width)


@dataclass(frozen=True)
class Template:
    """A program of `ins` operands of one type; `only` says of which kind.

    In its body, operands are %x0, .., outputs %y0, .., the results %r0, ..; T is the element type,
    W the width, V three more, and ADD, MUL are arithmetic. `growth` bounds results by operands.
    """

    name: str
    body: str
    ins: int = 1
    outs: tuple[Dims, ...] = (_as_it_is,)
    updates: bool = False
    only: str = "float"
    growth: float = 8.0

    def text(self, name: str, element: str, width: int) -> str:
        """The module of the program."""
        tensors = [(f"%x{i}", _as_it_is("p", width)) for i in range(self.ins)]
        tensors += [(f"%y{i}", dims("p", width)) for i, dims in enumerate(self.outs)]
        named = [_named(dims, element) for _, dims in tensors]
        plain = [_plain(dims, element) for _, dims in tensors]
        outs = ", ".join(named[self.ins :])
        enter = [
            f"  {value} = tensor.cast {value}_ : {a} to {b}"
            for (value, _), a, b in zip(tensors, named, plain)
        ]
        leave = [
            f"  %r{i}_ = tensor.cast %r{i} : {b} to {a}"
            for i, (a, b) in enumerate(zip(named[self.ins :], plain[self.ins :]))
        ]
        parameters = ", ".join(f"{v}_: {t}" for (v, _), t in zip(tensors, named))
        results = ", ".join(f"%r{i}_" for i in range(len(self.outs)))
        body = _written(self.body, element, width)
        return "\n".join(
            [
                f"func.func private @{name}({parameters}) -> ({outs})",
                f"    attributes {{tir.prim_func, tir.num_outs = {len(self.outs)} : i64}} {{",
                *enter,
                body,
                *leave,
                f"  return {results} : {outs}",
                "}",
            ]
        )


def _written(body: str, element: str, width: int) -> str:
    is_float = element[0] in "bf"
    words = {
        "ADD": "arith.addf" if is_float else "arith.addi",
        "MUL": "arith.mulf" if is_float else "arith.muli",
        "ZERO": "0.0" if is_float else "0",
        "TAIL": ".0" if is_float else "",
        "T": element,
        "W": str(width),
        "V": str(width + 3),
    }
    return re.sub(r"ADD|MUL|ZERO|TAIL|T(?![a-z])|W|V", lambda match: words[match.group()], body)


def _named(dims: Sequence[Any], element: str) -> str:
    shape = ", ".join(str(d) if isinstance(d, int) else f'"{d}"' for d in dims)
    return f"{_plain(dims, element)[:-1]}, #graph.shape<[{shape}]>>"


def _plain(dims: Sequence[Any], element: str) -> str:
    return "tensor<" + "".join(f"{d if isinstance(d, int) else '?'}x" for d in dims) + f"{element}>"


_SAME = "affine_map<(i, j) -> (i, j)>"
_GENERIC = 'iterator_types = ["parallel", "parallel"]'

_RUNNING = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cw = arith.constant W : index
  %n = tensor.dim %x0, %c0 : tensor<?xWxT>
  %zero = arith.constant ZERO : T
  %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y0) -> tensor<?xWxT> {
    %s, %b = scf.for %j = %c0 to %cw step %c1 iter_args(%t = %zero, %c = %a)
        -> (T, tensor<?xWxT>) {
      %x = tensor.extract %x0[%i, %j] : tensor<?xWxT>
      %u = ADD %t, %x : T
      %d = tensor.insert %u into %c[%i, %j] : tensor<?xWxT>
      scf.yield %u, %d : T, tensor<?xWxT>
    }
    scf.yield %b : tensor<?xWxT>
  }"""

_MIRROR = f"""
  %cw = arith.constant W : index
  %c1 = arith.constant 1 : index
  %r0 = linalg.generic {{indexing_maps = [{_SAME}], {_GENERIC}}} outs(%y0 : tensor<?xWxT>) {{
  ^bb0(%o: T):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.subi %cw, %j : index
    %l = arith.subi %k, %c1 : index
    %x = tensor.extract %x0[%i, %l] : tensor<?xWxT>
    linalg.yield %x : T
  }} -> tensor<?xWxT>"""

_COMBINE = f"""
  %two = arith.constant 2TAIL : T
  %r0 = linalg.generic {{indexing_maps = [{_SAME}, {_SAME}, {_SAME}], {_GENERIC}}}
      ins(%x0, %x1 : tensor<?xWxT>, tensor<?xWxT>) outs(%y0 : tensor<?xWxT>) {{
  ^bb0(%a: T, %b: T, %o: T):
    %m = MUL %a, %two : T
    %s = ADD %m, %b : T
    linalg.yield %s : T
  }} -> tensor<?xWxT>"""

_UPDATE = f"""
  %two = arith.constant 2TAIL : T
  %r0 = linalg.generic {{indexing_maps = [{_SAME}, {_SAME}], {_GENERIC}}}
      ins(%x0 : tensor<?xWxT>) outs(%y0 : tensor<?xWxT>) {{
  ^bb0(%a: T, %o: T):
    %m = MUL %o, %two : T
    %s = ADD %m, %a : T
    linalg.yield %s : T
  }} -> tensor<?xWxT>"""

_ROWS = """
  %zero = arith.constant ZERO : T
  %f = linalg.fill ins(%zero : T) outs(%y0 : tensor<?xT>) -> tensor<?xT>
  %r0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x0 : tensor<?xWxT>) outs(%f : tensor<?xT>) {
  ^bb0(%a: T, %o: T):
    %s = ADD %o, %a : T
    linalg.yield %s : T
  } -> tensor<?xT>"""

_TURN = """
  %r0 = linalg.transpose ins(%x0 : tensor<?xWxT>) outs(%y0 : tensor<Wx?xT>) permutation = [1, 0]"""

_BOTH = f"""
  %r0, %r1 = linalg.generic {{indexing_maps = [{_SAME}, {_SAME}, {_SAME}], {_GENERIC}}}
      ins(%x0 : tensor<?xWxT>) outs(%y0, %y1 : tensor<?xWxT>, tensor<?xWxT>) {{
  ^bb0(%a: T, %o: T, %p: T):
    %s = ADD %a, %a : T
    %m = ADD %s, %a : T
    linalg.yield %s, %m : T, T
  }} -> (tensor<?xWxT>, tensor<?xWxT>)"""

_PAD = """
  %one = arith.constant 1TAIL : T
  %p = tensor.pad %x0 low[0, 1] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : T
  } : tensor<?xWxT> to tensor<?xVxT>
  %r0 = linalg.copy ins(%p : tensor<?xVxT>) outs(%y0 : tensor<?xVxT>) -> tensor<?xVxT>"""

_PRODUCT = """
  %zero = arith.constant ZERO : T
  %c0 = arith.constant 0 : index
  %f = linalg.fill ins(%zero : T) outs(%y0 : tensor<WxWxT>) -> tensor<WxWxT>
  %r0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i)>,
      affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x0, %x1 : tensor<?xWxT>, tensor<?xWxT>) outs(%f : tensor<WxWxT>) {
  ^bb0(%a: T, %b: T, %c: T):
    %m = MUL %a, %b : T
    %s = ADD %c, %m : T
    linalg.yield %s : T
  } -> tensor<WxWxT>"""


def _kinds(name: str, body: str, **settings: Any) -> list[Template]:
    return [Template(name, body, only=only, **settings) for only in ("float", "integer")]


TEMPLATES: tuple[Template, ...] = (
    *_kinds("running", _RUNNING, growth=64.0),
    *_kinds("mirror", _MIRROR, growth=1.0),
    *_kinds("combine", _COMBINE, ins=2, growth=3.0),
    *_kinds("update", _UPDATE, updates=True, growth=3.0),
    *_kinds("rows", _ROWS, outs=(lambda p, w: (p,),), growth=64.0),
    *_kinds("turn", _TURN, outs=(lambda p, w: (w, p),), growth=1.0),
    *_kinds("both", _BOTH, outs=(_as_it_is, _as_it_is), growth=3.0),
    *_kinds("pad", _PAD, outs=(lambda p, w: (p, w + 3),), growth=1.0),
    *_kinds("product", _PRODUCT, ins=2, outs=(lambda p, w: (w, w),), growth=1e4),
)
