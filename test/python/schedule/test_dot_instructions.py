"""The 8-bit dot products of each machine, counted in its assembly."""

import re

import pytest
from assembly import assembly, operands_in_memory
from integer_programs import product
from quantized_programs import Product

from relax_mlir.target import Target

# The instruction of a target, and one of another that would be a wrong choice there.
INSTRUCTIONS = [
    ("x86-64-v4+avx512vnni", r"\bvpdpbusd\b.*%zmm", r"\bvpmaddubsw\b"),
    ("x86-64-v3+avxvnni", r"\{vex\}\s+vpdpbusd\b.*%ymm", r"%zmm|\bvpmaddubsw\b"),
    ("x86-64-v3", r"\bvpmaddubsw\b.*%ymm", r"%zmm|\bvpdpbusd\b"),
    ("aarch64-v8.2", r"\bsdot\s+v\d+\.4s, v\d+\.16b, v\d+\.", r"\bsmlal"),
    ("neoverse-v1", r"\bsdot\s+z\d+\.s, z\d+\.b, z\d+\.b", r"\bsmlal|\bsdot\s+v"),
    ("aarch64-v8.6", r"\bsdot\s+v\d+\.4s, v\d+\.16b, v\d+\.", r"\bsmlal"),
    ("x86-64-v2", r"\bmulps\b.*%xmm", r"%ymm|\bv?pdpbusd\b|\bv?pmaddubsw\b"),
    ("aarch64", r"\bfmla\s+v\d+\.4s", r"\bsdot\b"),
    ("aarch64-v8.6+vector-bytes=4", r"\bfm(?:ul|add|la)\b", r"\b[su]{1,2}(?:dot|mmla)\b"),
    ("wasm32", r"\bi32x4\.dot_i16x8_s\b", r"\bf32x4\.relaxed"),
]


@pytest.mark.parametrize(("name", "wanted", "unwanted"), INSTRUCTIONS)
def test_instructions_of_targets(name: str, wanted: str, unwanted: str) -> None:
    text = assembly(Product("q8_0", 32, 64, "int8").text(), Target.parse(name))
    assert len(re.findall(wanted, text)) >= 8, "a block is eight groups of four elements"
    assert not re.search(unwanted, text)
    assert not re.search(r"(call|bl)\s+llvm\.", text), "an intrinsic that LLVM does not know"


def _byte_and_word_products(scheme: str) -> tuple[int, int]:
    """How many products a kernel has of bytes, and of 16-bit elements, which also widen sums."""
    text = assembly(Product(scheme, 32, 256, "int8").text(), Target.parse("x86-64-v3"))
    bytes_, words = (len(re.findall(rf"\b{name}\b", text)) for name in ("vpmaddubsw", "vpmaddwd"))
    return bytes_, words


@pytest.mark.parametrize(("scheme", "together"), [("q6_k", 2), ("q5_0", 4), ("q4_0", 8)])
def test_narrow_products_are_widened_together(scheme: str, together: int) -> None:
    """Counted in a whole kernel, where sums of weights are a few products more, alone."""
    bytes_, words = _byte_and_word_products(scheme)
    assert together / 2 < bytes_ / words <= together


def test_many_rows_of_8_bits_are_multiplied_in_16() -> None:
    """Of few rows each product is widened by itself, but sums of weights are together."""
    bytes_, words = _byte_and_word_products("q8_0")
    many = 32 * (4 + 1)  # of a block by 16 columns: four rows at once, and one
    assert 1.2 < bytes_ / (words - many) <= 1.5


def test_many_rows_in_tile_registers() -> None:
    target = Target.parse("x86-64-v4+avx512vnni+amx-tile+amx-int8")
    text = assembly(Product("q8_0", 32, 64, "int8").text(), target)
    runs = re.findall(r"\btdpbssd\b[^:]*?\btilestored\b[^:]*?\n\.L", text)
    rows = [len(re.findall(r"\bvcvtdq2ps\b.*\(.*%zmm", run)) for run in runs]
    assert 16 in rows, "a product is stored, and each row of the one before is scaled"
    assert len(re.findall(r"\bvpdpbusd\b.*%zmm", text)) >= 8, "few rows are in vectors"


def test_operands_in_memory_of_many_rows_are_no_instructions_of_their_own() -> None:
    """Intel's cores take two for one that adds a base and an index."""
    target = Target.parse("sapphirerapids+-amx-tile")
    text = assembly(Product("q8_0", 32, 64, "int8").text(), target)
    assert operands_in_memory(text, "vpdpbusd") >= 8 * (8 + 4 + 1), "rows at once of many"


def test_operands_in_memory_of_plain_products() -> None:
    text = assembly(product("m", 40, 64), Target.parse("sapphirerapids+-amx-tile"))
    assert operands_in_memory(text, "vpdpbusd") >= 2 * 11, "of 14 rows, and both vectors"
    text = assembly(product("m", 40, 64), Target.parse("x86-64-v4+avx512vnni"))
    assert not operands_in_memory(text, "vpdpbusd")


def test_tile_registers_alone_are_no_dot_products() -> None:
    target = Target.parse("x86-64-v4+amx-tile+amx-int8")
    assert "tdpbssd" not in assembly(Product("q8_0", 32, 64, "int8").text(), target)


# Plain products of 8-bit integers: a tile's sums are in registers, and nothing saturates.
PLAIN = [
    ("x86-64-v4+avx512vnni", r"\bvpdpbusd\b.*%zmm", r"\bvpmaddubsw\b", 28),
    ("x86-64-v4", r"\bvpmaddwd\b.*%zmm", r"\bvpdpbusd\b|\bvpmaddubsw\b", 28),
    ("x86-64-v3", r"\bvpmaddwd\b.*%ymm", r"%zmm|\bvpdpbusd\b|\bvpmaddubsw\b", 12),
    ("aarch64-v8.2", r"\bsdot\s+v\d+\.4s, v\d+\.16b, v\d+\.", r"\bsmlal", 28),
    ("aarch64-v8.6", r"\bsmmla\s+v\d+\.4s, v\d+\.16b, v\d+\.16b", r"\bsmlal", 28),
    ("neoverse-v1", r"\bsmmla\s+z\d+\.s, z\d+\.b, z\d+\.b", r"\bsmlal", 28),
    ("wasm32", r"\bi32x4\.dot_i16x8_s\b", r"\bf32x4\.mul\b", 12),
]
# By the signs of both sides; signed elements are biased where no instruction takes both.
SIGNS = [
    ("aarch64-v8.2", "ui8", "ui8", {"udot"}, False),
    ("aarch64-v8.2", "ui8", "i8", {"udot"}, True),
    ("aarch64-v8.2", "i8", "ui8", {"sdot"}, True),
    ("aarch64-v8.6", "i8", "i8", {"sdot", "smmla"}, False),
    ("aarch64-v8.6", "ui8", "ui8", {"udot", "ummla"}, False),
    ("aarch64-v8.6", "ui8", "i8", {"usdot", "usmmla"}, False),
    ("aarch64-v8.6", "i8", "ui8", {"usdot", "usmmla"}, False),
    ("neoverse-v1", "ui8", "i8", {"usdot", "usmmla"}, False),
]


@pytest.mark.parametrize(("name", "wanted", "unwanted", "count"), PLAIN)
def test_instructions_of_plain_products(name: str, wanted: str, unwanted: str, count: int) -> None:
    text = assembly(product("m", 40, 64), Target.parse(name))
    assert len(re.findall(wanted, text)) >= count
    assert not re.search(unwanted, text)
    assert not re.search(r"(call|bl)\s+llvm\.", text), "an intrinsic that LLVM does not know"


@pytest.mark.parametrize(("name", "left", "right", "wanted", "is_biased"), SIGNS)
def test_instructions_by_signs(
    name: str, left: str, right: str, wanted: set[str], is_biased: bool
) -> None:
    text = assembly(product("m", 40, 64, elements=(left, right)), Target.parse(name))
    instructions = set(re.findall(r"\b[su]{1,2}(?:dot|mmla)\b(?=\s+[vz])", text))
    assert instructions == wanted
    assert bool(re.search(r"\beor\s+[vz]\d+\.(16b|d)", text)) == is_biased
