"""Slices of a product: nothing is stored outside of them."""

import numpy as np
import pytest
from scheduled import assert_guarded, built, guarded, program

K = 8
SLICES = {
    "first_columns": ("[0, 0] [%m, 3] [1, 1]", "?x3", lambda c: c[:, :3]),
    "first_row": ("[0, 0] [1, 40] [1, 1]", "40", lambda c: c[0]),
    "first_rows": ("[0, 0] [2, 40] [1, 1]", "2x40", lambda c: c[:2]),
    "every_other_column": ("[0, 0] [%m, 20] [1, 2]", "?x20", lambda c: c[:, ::2]),
    "all": ("[0, 0] [%m, 40] [1, 1]", "?x40", lambda c: c),
}


def _text(name: str, element: str, then: str) -> str:
    window, slice_dims, _ = SLICES[name]
    zero = "0.0" if element[0] == "f" else "0"
    x, w, c, out = (
        f"tensor<{dims}x{element}>" for dims in (f"?x{K}", f"{K}x40", "?x40", slice_dims)
    )
    body = f"""
        %at = arith.constant 0 : index
        %m = tensor.dim %x0, %at : {x}
        %zero = arith.constant {zero} : {element}
        %empty = tensor.empty(%m) : {c}
        %init = linalg.fill ins(%zero : {element}) outs(%empty : {c}) -> {c}
        %c = linalg.matmul ins(%x0, %x1 : {x}, {w}) outs(%init : {c}) -> {c}
        %s = tensor.extract_slice %c{window} : {c} to {out}
        %0 = linalg.{then} ins(%s : {out}) outs(%y0 : {out}) -> {out}
        return %0"""
    return program([x, w], [out], body)


@pytest.mark.parametrize("name", SLICES)
def test_slices_of_products(name: str) -> None:
    kernel = built(_text(name, "f32", "square"), in_order=True)
    for rows in (2, 5, 33):
        x, w = (np.random.default_rng(rows).standard_normal(s) for s in ((rows, K), (K, 40)))
        want = SLICES[name][2](x @ w) ** 2
        out, memory = guarded(want.shape, np.dtype(np.float32))
        kernel(x.astype(np.float32), w.astype(np.float32), out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)
        assert_guarded(memory)


def test_collapsed_rows_of_a_sliced_operand() -> None:
    """Rows of all matrices are one dim of the product, but not of a part of each matrix."""
    x, w, r, out = (f"tensor<{dims}xf32>" for dims in ("4x6x8", "8x40", "4x9x40", "4x6x40"))
    maps = "affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>"
    maps = f"{maps}, affine_map<(b, m, n, k) -> (b, m, n)>"
    loops = '"parallel", "parallel", "parallel", "reduction"'
    body = f"""
        %zero = arith.constant 0.0 : f32
        %empty = tensor.empty() : {out}
        %init = linalg.fill ins(%zero : f32) outs(%empty : {out}) -> {out}
        %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
            ins(%x0, %x1 : {x}, {w}) outs(%init : {out}) {{
        ^bb0(%a: f32, %b: f32, %t: f32):
          %p = arith.mulf %a, %b : f32
          %q = arith.addf %t, %p : f32
          linalg.yield %q : f32
        }} -> {out}
        %s = tensor.extract_slice %x2[0, 2, 0] [4, 6, 40] [1, 1, 1] : {r} to {out}
        %0 = linalg.add ins(%c, %s : {out}, {out}) outs(%y0 : {out}) -> {out}
        return %0"""
    kernel = built(program([x, w, r], [out], body), in_order=True)
    shapes = (4, 6, 8), (8, 40), (4, 9, 40), (4, 6, 40)
    generator = np.random.default_rng()
    a, b, c, y = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
    kernel(a, b, c, y)
    np.testing.assert_allclose(y, a.astype(np.float64) @ b + c[:, 2:8], rtol=1e-4, atol=1e-5)
