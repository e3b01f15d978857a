"""Products with decoders written by hand, as figure 9 of the paper fuses them, against NumPy."""

from itertools import product

import numpy as np
import pytest
from decoders import SHIFTS, Decoder, of_symbolic_columns

import relax_mlir
from relax_mlir.testing.guards import check_guards, guarded

DECODERS = {
    "nibbles": Decoder(4, "i8", 32),
    "high_nibbles_first": Decoder(4, "i8", 8, highest_first=True),
    "words_of_nibbles": Decoder(4, "i32", 32),
    "words_of_3_bits": Decoder(3, "i32", 32),
    "bytes": Decoder(8, "i8", 32),
    "pairs_of_bits": Decoder(2, "i8", 16),
    "halves_of_5_bits": Decoder(5, "i16", 24),
    "nibbles_along_k": Decoder(4, "i8", 32, along_k=True),
    "words_of_3_bits_along_k": Decoder(3, "i32", 32, along_k=True),
}
SHAPES = ((1, 1), (1, 300), (50, 7), (33, 40), (64, 257), (129, 31))
ROWS = (0, 1, 2, 3, 5, 8, 9, 17, 65)


def is_narrow(decoder: Decoder, k: int, n: int) -> bool:
    """Whether what is decoded is at most half as large as the matrix, so that it is fused."""
    words, scales = decoder.packed(k, n)
    bits = {"i8": 8, "i16": 16, "i32": 32}[decoder.word]
    return 2 * (bits * np.prod(words) + 32 * np.prod(scales)) <= 32 * k * n


def check(
    decoder: Decoder, k: int, n: int, text: str, options: dict, rows: tuple[int, ...]
) -> None:
    """Compiles a product and calls it between guard pages; no kernel decodes to memory."""
    executable = relax_mlir.compile(text, **options)
    generator = np.random.default_rng([k, n, len(text)])
    words, scales = decoder.arrays(k, n, generator)
    matrix = decoder.decoded(k, n, words, scales)
    if is_narrow(decoder, k, n) and options.get("opt_level", 2) >= 2:
        assert [name.startswith("fused_decode") for name in executable.metadata["kernels"]] == [
            True
        ]
    for m in rows:
        x = generator.standard_normal((m, k), dtype=np.float32)
        ins = [guarded(array, m % 2 == 0) for array in (x, words, scales)]
        out = guarded(np.zeros((m, n), np.float32), m % 3 != 0)
        executable["main"].bind(*ins, results=[out]).run()
        want = x.astype(np.float64) @ matrix
        want = np.maximum(want, 0) if "relu" in text else want
        bound = 1e-5 * (np.abs(x.astype(np.float64)) @ np.abs(matrix)) + 1e-6
        assert (np.abs(out - want) <= bound).all(), (m, np.abs(out - want).max())
        for array in (*ins, out):
            check_guards(array)


@pytest.mark.rotate(9)
@pytest.mark.parametrize(("k", "n"), SHAPES)
@pytest.mark.parametrize("name", DECODERS)
def test_product_with_a_decoder(name, k, n):
    decoder = DECODERS[name]
    check(decoder, k, n, decoder.module(k, n), {}, ROWS)


@pytest.mark.rotate(5)
@pytest.mark.parametrize("name", DECODERS)
def test_product_with_a_decoder_in_narrow_vectors(name):
    decoder = DECODERS[name]
    check(decoder, 67, 43, decoder.module(67, 43), {"target": "x86-64-v3"}, ROWS)


@pytest.mark.rotate(3)
@pytest.mark.parametrize("level", range(4))
def test_decoder_at_each_level_with_an_epilogue(level):
    decoder = DECODERS["nibbles"]
    options = {"opt_level": level}
    check(decoder, 70, 50, decoder.module(70, 50, relu=True), options, (1, 20))
    check(decoder, 70, 50, decoder.module(70, 50, rows="9"), options, (9,))


@pytest.mark.rotate(3)
@pytest.mark.parametrize("name", ["nibbles", "nibbles_along_k", "words_of_3_bits_along_k"])
def test_decoder_of_several_blocks_of_k(name):
    decoder = DECODERS[name]
    check(decoder, 3079, 37, decoder.module(3079, 37), {}, (1, 30))


@pytest.mark.rotate(3)
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_shifts_of_bytes_in_symbolic_columns(shift, element, target):
    executable = relax_mlir.compile(of_symbolic_columns(shift, element), target=target)
    assert executable.metadata["kernels"] == ["fused_decode_matmul"]
    generator = np.random.default_rng(0)
    dtype, tolerance = {"f32": (np.float32, 1e-5), "f16": (np.float16, 2e-3)}[element]
    for p, m in product((0, 1, 5, 16, 31, 32, 33, 100), (0, 1, 3, 20)):
        w = generator.integers(-128, 128, (64, p)).astype(np.int8)
        x = generator.standard_normal((m, 64)).astype(dtype)
        matrix = np.stack([w, SHIFTS[shift](w)], -1).reshape(64, 2 * p).astype(np.float64)
        left = x.astype(np.float64)
        bound = tolerance * (np.abs(left) @ np.abs(matrix)) + 1e-6
        assert (np.abs(executable["main"](x, w) - left @ matrix) <= bound).all(), (p, m)
