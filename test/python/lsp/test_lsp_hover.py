"""What is told of values, symbols, operators, functions, aliases and passes."""

import pytest
from marked import CURSOR, MODULE, at, opened

from relax_mlir import dialects
from relax_mlir.lsp import catalogue
from relax_mlir.lsp.features.hover import hover
from relax_mlir.lsp.features.outline import hints
from relax_mlir.lsp.text import Span
from relax_mlir.passes import own_passes


def told(marked: str, check: bool = True) -> str:
    document, offset = opened(marked, check)
    result = hover(document, offset)
    assert result is None or result.span.start <= offset <= result.span.end
    return "" if result is None else result.markdown


def test_value():
    text = told(at("return %", "4"))
    assert '%4: tensor<?x4xf32, #graph.shape<["n", 4]>>' in text
    assert "Facts: `0 <= n <= 100`, `n <= 100`, `k <= n`" in text
    assert "result of `graph.add`" in text
    text = told(at("%", "0 = "))
    assert "%0: tensor<?x4xf32>\n" in text
    assert 'inferred:\n```mlir\n%0: tensor<?x4xf32, #graph.shape<["n", 4]>>' in text
    assert "%y: tensor<?xf32>" in told(at('match_cast"(%', "y"))
    assert "%2#0: tensor<?x4xf32" in told(at("%2#", "0"))
    both = told(at("%", "2:2"))
    assert '%2#0: tensor<?x4xf32, #graph.shape<["n", 4]>>\n%2#1: index\n' in both
    assert "Facts: `0 <= n <= 100`" in both


def test_value_in_text_that_is_not_checked():
    assert "%4: !x" in told(at("return %", "4"), check=False)
    assert "%y: tensor<?xf32>" in told(at('match_cast"(%', "y"), check=False)
    assert "%2#0" in told(at("%2#", "0"), check=False)
    assert told("func.func @f() { return %" + CURSOR + "a : i1 }") == ""


def test_symbol():
    text = told(at('any_of = ["', "k"))
    assert "**k**: a dim's symbol in `@main`" in text
    assert "It is bound by dim 0 of the result `%1`." in text
    assert "Facts: `0 <= k <= 100`, `k <= n`" in text
    text = told(at('facts = ["', "n"))
    assert "It is bound by dim 0 of the argument `%x`." in text
    assert "`0 <= n <= 100`, `n <= 100`, `k <= n`" in text
    assert "each function that uses the type binds" in told(at('shape<["', "n"))
    unbound = MODULE.replace('"k <= n"', f'"{CURSOR}q <= n"')
    assert "Nothing binds it." in told(unbound)


@pytest.mark.parametrize(
    ("dims", "argument", "axis"),
    [('"m", "n"', "%a", 1), ('4, "2*n"', "%a", 1), ('"m", "?"', "%b", 0)],
)
def test_binding_dim(dims, argument, axis):
    text = told(
        f"func.func @f(%a: tensor<?x?xf32, #graph.shape<[{dims}]>>,\n"
        f'  %b: !graph.shape_value<["n{CURSOR}"]>) {{ return }}'
    )
    alone = "2*n" not in dims
    name, index = (argument, axis) if alone else ("%b", 0)
    assert f"dim {index} of the argument `{name}`" in text


def test_operator():
    text = told(at('%4 = "graph.a', "dd"))
    assert '"graph.add"(lhs, rhs) -> result' in text
    assert "- **C1** " in text
    assert '%2#0: tensor<?x4xf32, #graph.shape<["n", 4]>>' in text
    assert '%4 = tensor<?x4xf32, #graph.shape<["n", 4]>>' in text
    text = told(at("scf", ".if"))
    assert "%2 = tensor<?x4xf32" in text
    assert "%c: i1" in text


def test_attribute():
    assert "**any_of**: an array, an attribute of `graph.require`" in told(at("any_", "of"))


def test_attribute_of_a_function():
    text = told(at("graph.fa", "cts"))
    assert text.startswith("**graph.facts**: relations between the symbols of dims")


def test_function_and_alias():
    call = MODULE.replace("(%2#0, %0)", f"(%2#0, %0) {{callee = @ha{CURSOR}lf}}")
    assert "func.func private @half(%x: !x) -> !x\n" in told(call, check=False)
    assert '!x = tensor<?x4xf32, #graph.shape<["n", 4]>>\n' in told(at("return %4 : ", "!x"))
    assert told("func.func @f() { call @" + CURSOR + "g() : () -> () return }", False) == ""


def test_pass():
    text = told(f"// RUN: relax-opt %s --relax-fu{CURSOR}se-ops='max-size=4'")
    assert text.startswith("**relax-fuse-ops**")
    assert "- `max-size: int = " in text
    assert "Needs:" in text
    assert told(f"// RUN: relax-opt %s --can{CURSOR}onicalize") == (
        "**canonicalize**\n\nA pass of MLIR."
    )
    assert told(f"// a com{CURSOR}ment") == ""


@pytest.mark.parametrize(
    "marked", [CURSOR, CURSOR + "\n", "module " + CURSOR + "{}", "()" + CURSOR]
)
def test_nothing(marked):
    assert told(marked, check=False) == ""


def test_everything_is_documented():
    operators = catalogue.operators()
    assert set(operators) == {op.OPERATION_NAME for d in dialects.ALL for op in d.operations}
    for operator in operators.values():
        assert operator.documentation, operator.name
        assert not set(operator.attributes.values()) - set(catalogue._KINDS), operator.name
    assert set(own_passes()) < set(catalogue.passes())
    for name in own_passes():
        assert catalogue.passes()[name].documentation


def test_hints():
    document, _ = opened(MODULE + CURSOR, check=True)
    everything = hints(document, Span(0, len(MODULE)))
    assert [(hint.offset, hint.text) for hint in everything] == [
        (MODULE.index("%0 = ") + 2, ": tensor<n x 4 x f32>")
    ]
    assert hints(document, Span(0, 10)) == []
    assert hints(document.changed(MODULE), Span(0, len(MODULE))) == []
