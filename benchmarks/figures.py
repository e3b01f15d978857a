"""Writes the tables of figures in README.md, docs/ and benchmarks/ from `benchmarks/results/`.

    python benchmarks/figures.py            writes them
    python benchmarks/figures.py --check    fails if a page does not say what the results say

A file of results has one suite on one machine: for each case the rate of ours, that of another
program and the ratio, above 1 if ours is faster (`unit` ms: times). A table stands between the
lines `<!-- figures: NAME -->` and `<!-- end of figures -->`.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/performance.md", "benchmarks/README.md")
MARKED = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
MACHINES = {
    "zen3": "Zen 3 (AVX2)",
    "zen4": "Zen 4 (AVX-512)",
    "zen5": "Zen 5 (AVX-512)",
    "xeon": "Xeon (AVX-512)",
    "xeon-amx": "Xeon (AMX)",
}


@dataclass(frozen=True)
class Case:
    """What one case took: rates or times of ours and of one other program."""

    name: str
    threads: int
    unit: str
    peer: str
    ours: float
    theirs: float
    ratio: float


@dataclass(frozen=True)
class Line:
    """A line of the summary: cases of a suite whose names fit a pattern."""

    label: str
    suite: str
    pattern: str

    def cell(self, results: Mapping[tuple[str, str], Sequence[Case]], machine: str, n: int) -> str:
        """The geometric mean of the ratios to the best other program; empty if not measured."""
        cases = [
            case
            for case in results.get((self.suite, machine), ())
            if case.threads == n and re.fullmatch(self.pattern, case.name)
        ]
        best = least_by_case(cases)
        return f"{geometric_mean(best):.2f}" if best else ""


# TVM's and IREE's rates are far below the others': the best other program decides.
SUMMARY = (
    Line("SmolLM2 f32, prompts", "llm", r"f32 pp\d+"),
    Line("SmolLM2 f32, tokens", "llm", r"f32 tg\d+@\d+"),
    Line("SmolLM2 bf16, prompts", "llm", r"bf16 pp\d+"),
    Line("SmolLM2 bf16, tokens", "llm", r"bf16 tg\d+@\d+"),
    Line("SmolLM2 Q8_0, prompts", "llm", r"q8_0 pp\d+"),
    Line("SmolLM2 Q8_0, tokens", "llm", r"q8_0 tg\d+@\d+"),
    Line("SmolLM2 Q4_1, prompts", "llm", r"native pp\d+"),
    Line("SmolLM2 Q4_1, tokens", "llm", r"native tg\d+@\d+"),
    Line("matrix products, many rows", "kernels", r"product (?!1x).*"),
    Line("matrix products, one row", "kernels", r"product 1x.*"),
    Line("softmax, norms, chains, sums, argmax, transposes", "kernels", r"(?!product).*"),
    Line("an encoder, ResNet blocks, a Llama layer", "models", r".*"),
)


def least_by_case(cases: Iterable[Case]) -> list[float]:
    """The ratio to the best other program, for each case."""
    ratios: dict[str, float] = {}
    for case in cases:
        ratios[case.name] = min(case.ratio, ratios.get(case.name, case.ratio))
    return list(ratios.values())


def read_results(folder: Path) -> dict[tuple[str, str], list[Case]]:
    """The cases of each suite and machine that compare ours with others."""
    suites = {}
    for path in sorted(folder.glob("*.json")):
        suite, _, machine = path.stem.partition("-")
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        if suite not in ("quality", "memory"):
            suites[suite, machine] = [Case(row.pop("case"), **row) for row in rows]
    return suites


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def summary(threads: int) -> str:
    """How many times as fast as the best other program, by workload and machine."""
    results = read_results(ROOT / "benchmarks" / "results")
    rows = [
        [line.label, *(line.cell(results, machine, threads) for machine in MACHINES)]
        for line in SUMMARY
    ]
    return table(["", *MACHINES.values()], rows)


def language_models() -> str:
    """Tokens per second of ours and of the best other program, on one thread."""
    results = read_results(ROOT / "benchmarks" / "results")
    rows = []
    for machine, name in MACHINES.items():
        for weights in ("f32", "native"):
            cells = [name, {"native": "Q4_1"}.get(weights, weights)]
            for kind in (r"pp128", r"tg\d+@0"):
                fitting = [
                    case
                    for case in results["llm", machine]
                    if case.threads == 1 and re.fullmatch(f"{weights} {kind}", case.name)
                ]
                best = min(fitting, key=lambda case: case.ratio)
                cells.append(f"{best.ours:g} ({best.peer} {best.theirs:g})")
            rows.append(cells)
    return table(["machine", "weights", "prompt of 128", "generation"], rows)


def quality() -> str:
    """How far quantised arithmetic is from exact arithmetic, on 2,048 tokens."""
    path = ROOT / "benchmarks" / "results" / "quality-zen4.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return table(
        ["format", "program", "same likeliest token", "mean KL divergence"],
        (
            [row["case"], row["program"], f"{row['same_likeliest']} %", f"{row['mean_kl']:.2e}"]
            for row in rows
        ),
    )


def memory() -> str:
    """Bytes of activations with and without plans (paper Table 2)."""
    path = ROOT / "benchmarks" / "results" / "memory.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    sizes = ("separate", "pool", "planned", "bounded", "unbounded")
    return table(
        ["graph, calls", "MiB without reuse", "pool", "planned", "saved", "TVM", "TVM, no bounds"],
        (
            [
                f"{row['graph']}, {row['phase']} {', '.join(map(str, row['calls']))}",
                *(f"{row[size] / 2**20:.1f}" for size in sizes[:3]),
                f"{100 * (1 - row['planned'] / row['pool']):.0f} %",
                *(f"{row[size] / 2**20:.1f}" for size in sizes[3:]),
            ]
            for row in rows
        ),
    )


TABLES: Mapping[str, Callable[[], str]] = {
    "summary": lambda: summary(1),
    "summary-2": lambda: summary(2),
    "language-models": language_models,
    "quality": quality,
    "memory": memory,
}


def written(text: str) -> str:
    """A page with its tables as the results say."""
    return MARKED.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the pages, or checks them; 1 if one is out of date."""
    parser = argparse.ArgumentParser(description="Writes the tables of figures from the results.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if they differ")
    options = parser.parse_args(argv)
    stale = []
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if (new := written(text)) != text:
            stale.append(name)
            if not options.check:
                path.write_text(new, encoding="utf-8")
    if stale and options.check:
        print(f"{', '.join(stale)}: run python benchmarks/figures.py", file=sys.stderr)
    return int(bool(stale) and options.check)


if __name__ == "__main__":
    sys.exit(main())
