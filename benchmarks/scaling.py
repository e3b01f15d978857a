"""The gain of SmolLM2-135M from a second thread, compared with that of the machine's limits.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --weights native --threads 4 --rounds 9

Ours on one thread and ours on more run in their own processes, interleaved. README.md says more.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import interleaved
from llm_peers import WEIGHTS
from llm_results import quartiles

from relax_mlir.errors import UsageError
from relax_mlir.tools.cli import described, guard, integers

PROGRAMS = {
    "ours": "peers.llm_relax:Ours",
    "reader": "peers.llm_relax:Reader",
    "multiplier": "peers.llm_relax:Multiplier",
}
UNITS = {"f32": "f32", "bf16": "bf16", "q8_0": "int8", "native": "int8"}
KERNEL_RUNS = 8  # of a kernel that finds a limit in a round; their median counts
PROMPT_TARGET, STEP_TARGET = 1.85, 0.9


@dataclass(frozen=True)
class Gain:
    """Seconds of each round on one thread and on more: ours, and of the kernel for the limit."""

    case: str
    tokens: int
    one: Sequence[float]
    more: Sequence[float]
    kernel_one: Sequence[float]
    kernel_more: Sequence[float]

    @property
    def gains(self) -> list[float]:
        """How many times as fast more threads are, round by round."""
        return _quotients(self.one, self.more)

    @property
    def kernel_gains(self) -> list[float]:
        """The same of the kernel."""
        return _quotients(self.kernel_one, self.kernel_more)

    @property
    def share(self) -> float:
        """The gains as a share of the kernel's."""
        return statistics.median(_quotients(self.gains, self.kernel_gains))

    def cells(self) -> Iterator[str]:
        """The cell of the table."""
        yield self.case
        for seconds in (self.one, self.more):
            yield f"{self.tokens / statistics.median(seconds):.0f}"
        low, middle, high = quartiles(self.gains)
        yield from (f"{middle:.2f}", f"{low:.2f} to {high:.2f}")
        yield from (f"{statistics.median(self.kernel_gains):.2f}", f"{self.share:.2f}")
        generates = self.case.startswith("tg")
        value, target = (self.share, STEP_TARGET) if generates else (middle, PROMPT_TARGET)
        yield f"{'share' if generates else 'gain'} {target:g}{'' if value >= target else ' missed'}"


def _quotients(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [x / y for x, y in zip(a, b, strict=True)]


def main() -> int:
    """Runs the command."""
    options = _options()
    for weights in options.weights:
        print(f"\n**{weights}, {options.threads} threads against 1**\n")
        print("| case | 1 thread | more | gain | quartiles | kernel's | share | target |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for gain in _measure(options, weights):
            print(f"| {' | '.join(gain.cells())} |", flush=True)
    return 0


def _measure(options: argparse.Namespace, weights: str) -> Iterator[Gain]:
    """Runs the cases of one type of weights, one after the other."""
    with ExitStack() as stack:

        def start(threads: int) -> list[interleaved.Contender]:
            specs = {
                f"{interleaved.OURS} {name} {threads}": spec for name, spec in PROGRAMS.items()
            }
            started, absent = interleaved.start(specs, threads)
            for each in started:
                stack.callback(each.close)
            if absent:
                raise RuntimeError(next(iter(absent.values())))
            return started

        pairs = list(zip(start(1), start(options.threads), strict=True))
        ours, readers, multipliers = pairs
        common = {"weights": weights, "work": ""}
        peak = {"unit": UNITS[weights], "threads": options.threads}
        multiply = [_runs(each, peak, KERNEL_RUNS) for each in multipliers]
        read = [_runs(each, {}, KERNEL_RUNS) for each in readers]
        for prompt in options.pp:
            own = [_runs(each, {**common, "prompt": prompt}, 1) for each in ours]
            yield Gain(f"pp{prompt}", prompt, *_rounds(options.rounds, [*own, *multiply]))
        for context in options.context if options.tg else ():
            case = {**common, "generated": options.tg, "context": context}
            own = [_runs(each, case, 1) for each in ours]
            times = _rounds(options.rounds, [*own, *read])
            yield Gain(f"tg{options.tg}@{context}", options.tg, *times)


def _runs(program: interleaved.Contender, case: dict, runs: int) -> Callable[[], float]:
    """Prepares a case; what is returned runs it so many times, and gives the median."""
    outcomes = interleaved.prepare([program], case)
    if why_not := outcomes[program.name].why_not:
        raise UsageError(f"{program.name} cannot do {case}: {why_not}")

    def measure() -> float:
        outcome = outcomes[program.name]
        interleaved.measure([program], case, outcomes, 1, 0, runs)
        if outcome.why_not:
            raise RuntimeError(f"{program.name} fails at {case}: {outcome.why_not}")
        return outcome.seconds[-1]

    return measure


def _rounds(rounds: int, programs: Sequence[Callable[[], float]]) -> list[list[float]]:
    """The seconds of each program, interleaved."""
    times = [[program() for program in programs] for _ in range(rounds)]
    return [list(seconds) for seconds in zip(*times, strict=True)]


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    add("--weights", default=",".join(WEIGHTS), metavar="TYPE,...",
        help=f"types that are measured (default: {','.join(WEIGHTS)})")  # fmt: skip
    add("--threads", type=int, default=2, metavar="N", help="against one (default: 2)")
    add("--pp", type=integers, default=[128, 512], metavar="N,...",
        help="lengths of prompts (default: 128,512)")  # fmt: skip
    add("--tg", type=int, default=32, metavar="N",
        help="tokens to generate (default: 32); 0 measures prompts alone")  # fmt: skip
    add("--context", type=integers, default=[0, 512], metavar="N,...",
        help="tokens before those (default: 0,512)")  # fmt: skip
    add("--rounds", type=int, default=7, metavar="N", help="of each case (default: 7)")
    options = parser.parse_args()
    options.weights = options.weights.split(",")
    if unknown := {*options.weights} - {*WEIGHTS}:
        parser.error(f"no weights '{unknown.pop()}'; there are {', '.join(WEIGHTS)}")
    if options.threads < 2:
        parser.error(f"--threads {options.threads}: two at least")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: one at least")
    return options


if __name__ == "__main__":
    sys.exit(guard("scaling.py", main))
