"""Operators one value of which knows an extent that the others do not: legalised, they verify."""

from collections.abc import Iterator

import numpy as np
import pytest

from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import DataDependentOp, GraphOp, TensorType, annotation_of
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.passes import Pipeline
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import as_expr
from relax_mlir.testing.mutate.corpus import ROOT, corpus

FOLDERS = ("Dialect/Graph", "Transforms")
LEGALIZE = "builtin.module(relax-legalize-ops{allow-unknown})"
SIZE = 4


def changed(annotation: TensorType) -> Iterator[TensorType]:
    """The same tensor with its symbolic dims known, then with each known one symbolic."""
    dims = [as_expr(d) for d in annotation.dims or () if d is not None]
    known = [d.substitute({name: as_expr(SIZE) for name in d.symbols}) for d in dims]
    yield TensorType.make(known, annotation.element)
    for i, d in enumerate(dims):
        if d.value is not None and d.value > 1:
            yield TensorType.make(
                [*dims[:i], as_expr(f"fresh{i}"), *dims[i + 1 :]], annotation.element
            )


def variants(op: GraphOp) -> Iterator[str]:
    """Modules with the operator alone, the type of one operand or result of it changed."""
    operands, results = list(op.operands), list(op.results)
    types = [value.type for value in (*operands, *results)]
    for i, value in enumerate((*operands, *results)):
        annotation = annotation_of(value)
        if not isinstance(annotation, TensorType) or not annotation.is_exact:
            continue
        for other in changed(annotation):
            new = [*types[:i], other.to_mlir(), *types[i + 1 :]]
            if new != types:
                yield written(op, new)


def written(op: GraphOp, types: list[ir.Type]) -> str:
    """A function with the operator, of these types of operands and results."""
    count = len(op.operands)
    names = [f"%a{i}" for i in range(count)]
    results = ", ".join(f"%r{i}" for i in range(len(op.results)))
    attributes = ", ".join(f"{name} = {op.attributes[name]}" for name in op.attributes)
    given = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
    return (
        f'func.func @f({given}) {{\n  {results} = "{op.operation.name}"({", ".join(names)})'
        f" {{{attributes}}} : ({', '.join(map(str, types[:count]))}) -> "
        f"({', '.join(map(str, types[count:]))})\n  return\n}}\n"
    )


def operators() -> Iterator[GraphOp]:
    """One operator for each way it is called in the test files, as shapes are inferred."""
    seen = set()
    for text in (text for folder in FOLDERS for text in corpus(ROOT / "test" / folder)):
        module = parse_module(text)
        try:
            Pipeline.parse("builtin.module(relax-infer-shapes)").run(module)
        except CompileError:
            continue
        for op in walk_ops(module):
            is_operator = isinstance(op, GraphOp) and op.has_rule()
            is_operator &= not isinstance(op, DataDependentOp)
            if is_operator and (key := (op.operation.name, *_ranks(op))) not in seen:
                seen.add(key)
                yield op


def _ranks(op: GraphOp) -> list[int]:
    ranked = [v.type for v in (*op.operands, *op.results)]
    return [t.rank if isinstance(t, ir.RankedTensorType) else -1 for t in ranked]


def failure(text: str) -> tuple[bool, str]:
    """Whether the module is valid, and what is wrong with it after legalisation."""
    try:
        module = parse_module(text)
        Pipeline.parse("builtin.module()").run(module, verify=True)
    except (ir.MLIRError, CompileError):
        return False, ""
    try:
        Pipeline.parse(LEGALIZE).run(module)
        module.operation.verify()
    except CompileError:
        return True, ""
    except Exception as error:
        return True, f"{type(error).__name__}: {error}"
    return True, ""


def test_an_extent_that_one_value_knows() -> None:
    """That of the result of a rotation was static, the operand's not: invalid IR."""
    checked, wrong = 0, {}
    with make_context(upstream=None), ir.Location.unknown():
        for op in operators():
            for text in variants(op):
                is_valid, found = failure(text)
                checked += is_valid
                if found:
                    wrong.setdefault(op.operation.name, f"{text}{found}")
    assert not wrong, "\n".join(wrong.values())
    assert checked > 300, checked


def test_rows_and_heads_that_the_result_alone_knows() -> None:
    heads, table = 'tensor<?x2x?xf32, #graph.shape<["n", 2, "d"]>>', "tensor<5x4xf32>"
    main = compile(f"""
      func.func @main(%x: {heads}, %c: {table}, %s: {table}) -> tensor<5x2x8xf32> {{
        %0 = "graph.nn_rotary"(%x, %c, %s) : ({heads}, {table}, {table}) -> tensor<5x2x8xf32>
        return %0 : tensor<5x2x8xf32>
      }}
    """)["main"]
    random = np.random.default_rng(0)
    x, c, s = (random.standard_normal(n, np.float32) for n in ((5, 2, 8), (5, 4), (5, 4)))
    (low, high), c2, s2 = np.split(x.astype(np.float64), 2, -1), c[:, None], s[:, None]
    expected = np.concatenate([low * c2 - high * s2, high * c2 + low * s2], -1)
    np.testing.assert_allclose(main(x, c, s), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ExecutionError, match="n == 5"):
        main(x[:4], c, s)


def test_channels_of_groups_that_the_filters_alone_know() -> None:
    image, filters = 'tensor<1x?x3x3xf32, #graph.shape<[1, "c", 3, 3]>>', "tensor<6x2x3x3xf32>"
    main = compile(f"""
      func.func @main(%x: {image}, %w: {filters}) -> tensor<1x6x1x1xf32> {{
        %0 = "graph.nn_conv2d"(%x, %w) {{
          groups = 2 : i64, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
          dilation = array<i64: 1, 1>
        }} : ({image}, {filters}) -> tensor<1x6x1x1xf32>
        return %0 : tensor<1x6x1x1xf32>
      }}
    """)["main"]
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(n, np.float32) for n in ((1, 4, 3, 3), (6, 2, 3, 3)))
    halves = zip(np.split(x[0].astype(np.float64), 2), np.split(w, 2))
    expected = np.concatenate([np.einsum("cyx,kcyx->k", *half) for half in halves])
    np.testing.assert_allclose(main(x, w).ravel(), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ExecutionError, match="c == 4"):
        main(np.zeros((1, 6, 3, 3), np.float32), w)
