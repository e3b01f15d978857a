# RUN: %PYTHON %s %ROOT
"""Fails on a folder that uses words of our own, instead of the field's, more often than before.

docs/glossary.md has the field's words. Names count by their parts: `num_places` has "places". Some
uses are plain English, so each folder has a ceiling, which may only fall.
"""

import re
import sys
from collections import Counter
from pathlib import Path

INSTEAD = {
    "number": "element, value, index or count",
    "numbers": "elements, values, indices or counts",
    "place": "position, offset, pixel or location",
    "places": "positions, offsets, pixels or locations",
    "turned": "transposed or rotated",
    "moved": "biased, shifted or copied",
    "beside": "next to, or compared with",
    "behind": "after, or at an address",
    "ahead": "prefetched, or the prefetch distance",
    "kept": "saved, retained or sliced",
    "held": "live, or carried",
    "wide": "widened, or a count of columns",
    "found": "result, match or actual",
}
# MLIR has arg_number, operand_number and number_of_threads, JAX module_kept_var_idx; memory is
# updated in place everywhere; relax-place-devices decides where operators run.
WORD = re.compile(
    rf"(?<![a-z])(?<!in[ _-])(?<!arg_)(?<!operand_)(?<!module_)(?:{'|'.join(INSTEAD)})"
    r"(?![a-z]|[-_]devices|_of_threads)",
    re.IGNORECASE,
)
TOPS = ("relax_mlir", "dialects", "benchmarks", "test/python/schedule")
CEILINGS = {
    "benchmarks": 3,
    "benchmarks/peers": 1,
    "dialects/graph": 270,
    "dialects/tir": 10,
    "relax_mlir": 10,
    "relax_mlir/analysis": 10,
    "relax_mlir/bindings": 10,
    "relax_mlir/codegen": 40,
    "relax_mlir/codegen/vector_math": 10,
    "relax_mlir/host": 100,
    "relax_mlir/interpreter": 10,
    "relax_mlir/interpreter/dialects": 10,
    "relax_mlir/interpreter/operators": 60,
    "relax_mlir/interpreter/ptx/instructions": 4,  # the modifiers of PTX
    "relax_mlir/legalize": 26,
    "relax_mlir/legalize/elementwise": 1,
    "relax_mlir/legalize/movement": 27,
    "relax_mlir/legalize/products": 18,
    "relax_mlir/legalize/reductions": 19,
    "relax_mlir/legalize/sorts": 59,
    "relax_mlir/llm/architectures": 4,
    "relax_mlir/llm/checkpoints": 2,
    "relax_mlir/llm/formats": 11,
    "relax_mlir/llm/generation": 9,
    "relax_mlir/llm/serving": 1,  # a code of OpenAI's
    "relax_mlir/machine": 1,
    "relax_mlir/passes": 10,
    "relax_mlir/runtime": 70,
    "relax_mlir/schedule/cpu": 3,
    "relax_mlir/schedule/cpu/attention": 3,
    "relax_mlir/schedule/cpu/convolution": 5,
    "relax_mlir/schedule/cpu/isa": 3,
    "relax_mlir/schedule/cpu/product": 7,
    "relax_mlir/schedule/cpu/quantized": 2,
    "relax_mlir/schedule/nests": 10,
    "relax_mlir/target": 10,
    "relax_mlir/testing": 10,
    "relax_mlir/testing/fuzz": 90,
    "relax_mlir/testing/fuzz/recipes": 140,
    "relax_mlir/testing/mutate": 50,
    "relax_mlir/tools": 10,
    "relax_mlir/transforms": 120,
    "test/python/schedule": 4,
}


def counts(root: Path) -> dict[str, Counter[str]]:
    """How often each folder has each word; the link to the dialects is left out."""
    totals: dict[str, Counter[str]] = {}
    for top in TOPS:
        for path in sorted((root / top).rglob("*.py")):
            folder = path.parent.relative_to(root).as_posix()
            if not folder.startswith("relax_mlir/dialects"):
                words = WORD.findall(path.read_text(encoding="utf-8"))
                totals.setdefault(folder, Counter()).update(map(str.lower, words))
    return totals


def main(root: Path) -> None:
    """Compares the folders with their ceilings."""
    problems = []
    for folder, words in sorted(counts(root).items()):
        total, ceiling = sum(words.values()), CEILINGS.get(folder, 0)
        if total > ceiling:
            listed = "; ".join(f"{n} {word} ({INSTEAD[word]})" for word, n in words.most_common(5))
            problems.append(f"{folder}: {total} words of our own, at most {ceiling}: {listed}")
    if problems:
        sys.exit("\n".join([*problems, "docs/glossary.md has the field's words"]))


main(Path(sys.argv[1]))
