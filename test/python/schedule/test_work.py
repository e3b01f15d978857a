"""Operations and bytes of kernels, against counts made by hand."""

from pathlib import Path

import pytest

from relax_mlir.compiler import compile
from relax_mlir.symbolic import parse

PROGRAM = """
func.func @main({arguments}) -> {result} {{
  {body}
  return %y : {result}
}}
"""


def sites(arguments: str, result: str, body: str) -> list[dict]:
    """The calls of a function compiled without fusion."""
    text = PROGRAM.format(arguments=arguments, result=result, body=body)
    return compile(text, opt_level=0).metadata["functions"]["main"]["sites"]


def counted(site: dict, **symbols: int) -> tuple[int, int]:
    """Operations and bytes."""
    return tuple(parse(site[name]).evaluate(symbols) for name in ("flops", "bytes"))


ROWS = 'tensor<?x7xf32, #graph.shape<["n", 7]>>'


@pytest.mark.parametrize("n", [0, 1, 5, 64])
class TestCounts:
    def test_matmul_multiplies_and_adds(self, n):
        (site,) = sites(
            f"%x: {ROWS}, %w: tensor<7x5xf32>",
            'tensor<?x5xf32, #graph.shape<["n", 5]>>',
            f'%y = "graph.matmul"(%x, %w) : ({ROWS}, tensor<7x5xf32>)'
            ' -> tensor<?x5xf32, #graph.shape<["n", 5]>>',
        )
        assert counted(site, n=n) == (2 * n * 7 * 5, 4 * (n * 7 + 7 * 5 + n * 5))
        assert site["unit"] == "f32"

    def test_elementwise(self, n):
        (site,) = sites(
            f"%a: {ROWS}, %b: {ROWS}",
            ROWS,
            f'%y = "graph.add"(%a, %b) : ({ROWS}, {ROWS}) -> {ROWS}',
        )
        assert counted(site, n=n) == (7 * n, 3 * 4 * 7 * n)

    def test_a_gather_reads_the_rows_it_takes(self, n):
        indices = 'tensor<?xi32, #graph.shape<["n"]>>'
        (site,) = sites(
            f"%table: tensor<1000x7xf32>, %i: {indices}",
            ROWS,
            '%y = "graph.take"(%table, %i) {axis = 0 : i64}'
            f" : (tensor<1000x7xf32>, {indices}) -> {ROWS}",
        )
        assert counted(site, n=n) == (0, 4 * n + 2 * 4 * 7 * n)

    def test_a_slice_reads_what_it_keeps(self, n):
        (site,) = sites(
            f"%x: {ROWS}",
            'tensor<?x3xf32, #graph.shape<["n", 3]>>',
            '%y = "graph.strided_slice"(%x) {axes = array<i64: 1>, begin = #graph.shape<[2]>,'
            " end = #graph.shape<[5]>, strides = array<i64: 1>}"
            f' : ({ROWS}) -> tensor<?x3xf32, #graph.shape<["n", 3]>>',
        )
        assert counted(site, n=n) == (0, 2 * 4 * 3 * n)

    def test_caches_are_read_as_far_as_they_are_filled(self, n):
        module = Path(__file__).parents[2] / "Integration" / "decode_step.mlir"
        append, attend = compile(module, opt_level=0).metadata["functions"]["main"]["sites"]
        m, capacity = 11, 4096
        assert counted(append, n=n, m=m, c=capacity) == (0, 2 * 2 * n * 2 * 8 * 4)
        pairs = sum(m + 1 + i for i in range(n))
        rows = 2 * n * 6 * 8 + 2 * (m + n) * 2 * 8
        assert counted(attend, n=n, m=m, c=capacity) == (6 * pairs * (4 * 8 + 5), 4 * rows)

    @pytest.mark.rotate(4)
    @pytest.mark.parametrize("causal", [False, True])
    def test_attention_counts_pairs_that_see_each_other(self, n, causal):
        query = 'tensor<3x?x4x8xf32, #graph.shape<[3, "n", 4, 8]>>'
        keys = 'tensor<3x?x2x8xf32, #graph.shape<[3, "n", 2, 8]>>'
        (site,) = sites(
            f"%q: {query}, %k: {keys}",
            query,
            f'%y = "graph.nn_batched_attention"(%q, %k, %k) {{causal = {str(causal).lower()},'
            " operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 0.5 : f64}"
            f" : ({query}, {keys}, {keys}) -> {query}",
        )
        pairs = sum(i + 1 if causal else n for i in range(n))
        elements = 3 * n * 8 * (4 + 2 + 2 + 4)
        assert counted(site, n=n) == (3 * 4 * pairs * (4 * 8 + 5), 4 * elements)
