"""Tokens per second of SmolLM2-135M when many sequences generate at once, and of llama.cpp.

    python benchmarks/batches.py --peers-python PYTHON
    python benchmarks/batches.py --weights f32 --sequences 1,16 --threads 1

A step runs a token of each sequence, after `--context` others. Each program runs in its own
process, interleaved with ours; the peers' Python needs NumPy and xllamacpp. The logits of ours are
compared with those of each sequence alone. The roof is the time that the machine needs to read the
weights once, or for the multiplications of all sequences, whichever is longer. On a machine that
does other work too, one thread is the fair comparison: threads that wait for one another suffer
most.
"""

import argparse
import sys
from collections.abc import Sequence
from math import prod

import interleaved
import numpy as np
from interleaved import OURS, Outcome

from relax_mlir.llm import load
from relax_mlir.llm.checkpoints.convert import converted_file
from relax_mlir.llm.checkpoints.packaged import resolve
from relax_mlir.machine.measure import this_machine
from relax_mlir.tools.cli import described, guard, integers

PEER = "llama.cpp"
PROGRAMS = {OURS: "peers.batches_relax:Steps", PEER: "peers.batches_llamacpp:Steps"}
TOLERANCE = {"f32": 1e-3, "native": 0.5}
"""Largest difference of logits, whose spread is about 40; 8-bit activations round in blocks."""
UNITS = {"f32": "f32", "native": "int8"}
"""The arithmetic of products."""


def main() -> int:
    """Runs the command; 1 if a result of ours is wrong."""
    options = _options()
    programs, absent = interleaved.start(PROGRAMS, options.threads, options.peers_python)
    for name, reason in absent.items():
        print(f"{name} is not measured: {reason}", file=sys.stderr)
    try:
        cases = [(weights, count) for weights in options.weights for count in options.sequences]
        rows = {case: _measure(programs, *case, options) for case in cases}
    finally:
        for each in programs:
            each.close()
    interleaved.progress("")
    print(_table(rows, {case: _roof(*case, options.threads) for case in cases}))
    return int(any(row[OURS].why_not for row in rows.values()))


def _measure(
    programs: Sequence[interleaved.Contender], weights: str, count: int, options: argparse.Namespace
) -> dict[str, Outcome]:
    interleaved.progress(f"{weights}, {count} sequences")
    path = resolve("smollm2")
    shape = (count, options.context + 1)
    tokens = np.random.default_rng(count).integers(0, 49152, shape)
    case = {
        "weights": weights,
        "file": str(path if weights == "native" else converted_file(path, weights)),
        "context": options.context,
        "tokens": tokens.tolist(),
        "most": max(options.sequences),
    }
    model = load(weights=weights, threads=options.threads)
    alone = np.concatenate([model.session(shape[1]).append(row) for row in tokens])
    outcomes = interleaved.prepare(programs, case, alone, TOLERANCE[weights])
    interleaved.measure(programs, case, outcomes, options.rounds, 0.1, 3, warm=1)
    interleaved.forget(programs, case)
    return outcomes


def _roof(weights: str, count: int, threads: int) -> float:
    """The least seconds of a step of so many sequences on this machine."""
    model, limits = load(weights=weights, threads=threads), this_machine().at(threads)
    matrices = [shape for shape in model.config.weight_shapes().values() if len(shape) == 2]
    reading = sum(array.nbytes for array in model.parameters) / limits.bandwidth
    peak = limits.peak(UNITS[weights]) or limits.f32
    return max(reading, 2 * count * sum(map(prod, matrices)) / peak)


def _table(
    rows: dict[tuple[str, int], dict[str, Outcome]], roofs: dict[tuple[str, int], float]
) -> str:
    lines = [
        f"| weights | sequences | {OURS}, tokens/s | of one | of roof | {PEER}, tokens/s | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (weights, count), row in rows.items():
        ours, peer = (row.get(name, Outcome(why_not="absent")) for name in (OURS, PEER))
        first = next(each[OURS] for (kind, _), each in rows.items() if kind == weights)
        cells = [_rate(count, ours), "", "", _rate(count, peer), ""]
        if ours.median:
            cells[2] = f"{roofs[weights, count] / ours.median:.0%}"
        if ours.median and first.median:
            cells[1] = f"{count * first.median / ours.median / _first(rows, weights):.1f}x"
        if ours.median and peer.median:
            cells[4] = f"{ours.ratio(peer):.2f}"
        lines.append(f"| {weights} | {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _first(rows: dict[tuple[str, int], dict[str, Outcome]], weights: str) -> int:
    return next(count for kind, count in rows if kind == weights)


def _rate(count: int, outcome: Outcome) -> str:
    return outcome.why_not or f"{count / outcome.median:.0f}" if outcome.median else outcome.why_not


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    add("--weights", default="native,f32", metavar="W,...", help="native (Q4_1) and f32")
    add("--sequences", type=integers, default=[1, 4, 16, 64], metavar="N,...")
    add("--context", type=int, default=128, metavar="N", help="tokens before (default: 128)")
    add("--threads", type=int, default=2, metavar="N")
    add("--rounds", type=int, default=7, metavar="N")
    add("--peers-python", default=sys.executable, metavar="PYTHON")
    options = parser.parse_args()
    options.weights = options.weights.split(",")
    if wrong := set(options.weights) - TOLERANCE.keys():
        parser.error(f"--weights has {', '.join(sorted(wrong))}; accepted are native, f32")
    return options


if __name__ == "__main__":
    sys.exit(guard("batches.py", main))
