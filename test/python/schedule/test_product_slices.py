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
