"""Positions: offsets, the protocol's columns in three encodings, and MLIR's lines and bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_mlir.lsp.text import Span, Text

ENCODINGS = {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}
TEXTS = st.text(st.sampled_from("a \n\ré€𝄞\ud800\u2028\x0b"), max_size=30)


@pytest.mark.parametrize(("codec", "unit"), ENCODINGS.items())
@given(TEXTS)
def test_positions_are_lengths_of_encoded_lines(codec, unit, text):
    read = Text(text, codec.removesuffix("-le"))
    for offset in range(len(text) + 1):
        before = text[:offset]
        if before.endswith("\r") and text[offset : offset + 1] == "\n":
            continue  # inside of a line end
        lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        column = len(lines[-1].encode(codec, "surrogatepass")) // unit
        assert read.position(offset) == (len(lines) - 1, column)
        assert read.offset((len(lines) - 1, column)) == offset


@given(TEXTS, st.integers(-2, 40), st.integers(-2, 40))
def test_positions_outside_are_clamped(text, line, column):
    read = Text(text)
    assert 0 <= read.offset((line, column)) <= len(text)
    assert 0 <= read.offset_in_mlir(line, column) <= len(text)


@given(TEXTS)
def test_positions_of_mlir_count_bytes(text):
    read = Text(text)
    for offset in range(len(text) + 1):
        lines = text[:offset].split("\n")
        column = len(lines[-1].encode("utf-8", "surrogatepass")) + 1
        assert read.offset_in_mlir(len(lines), column) == offset


def test_a_column_in_a_character_is_at_its_beginning():
    assert Text("𝄞a").offset((0, 1)) == 0
    assert Text("𝄞a").offset((0, 2)) == 1
    assert Text("a\r\nb").offset((0, 9)) == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_chunks(end):
    text = end.join(["a", "// -----", "b", "// ----- no", "// -----  ", ""])
    chunks = Text(text).chunks()
    assert [text[each.start : each.end].strip() for each in chunks] == [
        "a",
        f"b{end}// ----- no",
        "",
    ]
    assert Text("").chunks() == [Span(0, 0)]
