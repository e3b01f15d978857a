"""Tokens per second of SmolLM2-135M compared with other programs on the same weights.

    python benchmarks/llm.py --peers-python PYTHON
    python benchmarks/llm.py --weights q8_0,native --threads 2 --peers llama.cpp --rounds 7
    python benchmarks/llm.py --report

Each program runs in its own process, interleaved with ours. README.md says what is compared and
how.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import interleaved
import llm_model
import numpy as np
from llm_peers import PEERS, WEIGHTS, BuildError, Peer
from llm_results import Block, Row, load_blocks, report

from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.packaged import cache_folder
from relax_mlir.machine.measure import READ_BYTES
from relax_mlir.tools.cli import described, guard, integers

OURS = interleaved.OURS
Outcomes = dict[str, interleaved.Outcome]
OUR_SPEC, READER_SPEC = "peers.llm_relax:Ours", "peers.llm_relax:Reader"
ROUNDS, QUICK_ROUNDS = 5, 2
TRIALS = 240  # of MetaSchedule
READ_RUNS = 8  # of the reading kernel in a round; their median counts
# Seconds of a round of one pair at one thread, by weights; and what comes before the first.
ROUND_SECONDS = {"f32": 12.0, "bf16": 7.0, "q8_0": 5.0, "native": 5.0}
START_SECONDS, SLOW_SECONDS = 25, 150


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong."""
    options = _options()
    results = options.work / "results"
    if options.report:
        print(report(load_blocks(results), options.weights, options.threads))
        return 0
    bench = Bench(options)
    print(f"this takes about {_estimate(options) / 60:.0f} minutes", flush=True)
    blocks = []
    try:
        for weights in options.weights:
            for threads in options.threads:
                for peer in options.peers:
                    if weights in peer.weights:
                        block = bench.pair(peer, weights, threads)
                        print(
                            f"{weights}, {threads} threads: {peer.name}: {block.note}", flush=True
                        )
                        block.save(results)
                        blocks.append(block)
    except OurAnswerIsWrong as error:
        print(error, file=sys.stderr)
        return 1
    print(report(blocks, options.weights, options.threads))
    return 0


class OurAnswerIsWrong(Exception):
    """The comparison is void."""


class PeerFails(Exception):
    """A program fails at a case; the message says at which, and why."""


class Absent(Exception):
    """No interpreter has the program; the message says what is missing."""


@dataclass(frozen=True)
class Turn:
    """What a program does in each round of a case, `runs` times."""

    program: interleaved.Contender
    case: dict
    runs: int = 1


class Bench:
    """Makes what programs need, starts them in pairs, checks and measures them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._checkpoint = open_checkpoint("smollm2")
        options.work.mkdir(parents=True, exist_ok=True)
        self._tokens = options.work / "checked_tokens.npy"
        np.save(self._tokens, llm_model.checked_tokens(self._checkpoint))
        reference = options.work / "reference.npy"
        if not (options.work / "hf/config.json").exists() or not reference.exists():
            print("writing the weights in float32, and the right answers", flush=True)
            tokens = np.load(self._tokens)
            logits = llm_model.reference_logits(self._checkpoint.weights, tokens)
            np.save(reference, logits)
            llm_model.export_hugging_face(self._checkpoint, options.work / "hf")
        self._reference = np.load(reference)

    def pair(self, peer: Peer, weights: str, threads: int) -> Block:
        """Measures one program against ours."""
        block = Block(weights, threads, peer.name, "", "")
        try:
            with _started(peer.spec, peer.name, threads, self._options.pythons) as (other, python):
                block = replace(block, version=other.version)
                peer.build(self._options.work, weights, python, self._options.trials)
                right, note = self._check(other, weights)
                measured = right and self._options.rounds > 0
                rows = self._rows(other, peer, weights, threads) if measured else []
        except Absent as error:
            return replace(block, note=f"absent: {error}")
        except (BuildError, PeerFails) as error:
            return replace(block, note=str(error))
        return replace(block, note=note, rows=rows)

    def _rows(
        self, other: interleaved.Contender, peer: Peer, weights: str, threads: int
    ) -> list[Row]:
        """Measures all cases; raises OurAnswerIsWrong."""
        own = [sys.executable]
        with (
            _started(OUR_SPEC, OURS, threads, own) as (ours, _),
            _started(READER_SPEC, "reader", threads, own) as (reader, _),
        ):
            right, note = self._check(ours, weights)
            if not right:
                raise OurAnswerIsWrong(f"{OURS} with {weights}: {note}")
            cases = list(_cases(self._options, peer))
            turns_of = [self._turns((ours, other, reader), peer, weights, case) for case in cases]
            outcomes = [_prepare(turns_) for turns_ in turns_of]
            for turns_, outcome in zip(turns_of, outcomes, strict=True):
                _measure(turns_, outcome, self._options.rounds)
        return [
            self._row(peer, weights, case, turns_, outcome)
            for case, turns_, outcome in zip(cases, turns_of, outcomes, strict=True)
        ]

    def _check(self, program: interleaved.Contender, weights: str) -> tuple[bool, str]:
        """Whether its answers are right, and a line about it."""
        case = {"prompts": llm_model.PROMPTS, "steps": llm_model.STEPS, "check": str(self._tokens)}
        case |= {"weights": weights, "work": str(self._options.work)}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "answers.npy"
            answer = program.ask(do="prepare", case=case, check=str(file))
            if why_not := answer.get("unsupported") or answer.get("failed"):
                return False, f"fails: {why_not}"
            agreement = llm_model.agreement(np.load(file), self._reference)
        program.ask(do="forget", case=case)
        right = agreement.is_right(weights)
        return right, f"{'right' if right else 'wrong, no baseline'}: {agreement}"

    def _turns(
        self, programs: Sequence[interleaved.Contender], peer: Peer, weights: str, case: dict
    ) -> list[Turn]:
        """Ours, the peer, and the reading kernel if tokens are generated."""
        ours, other, reader = programs
        common = {"weights": weights, "work": str(self._options.work)}
        if "generated" not in case:
            return [Turn(program, {**case, **common}) for program in (ours, other)]
        fewer = {"generated": min(case["generated"], peer.max_tokens or case["generated"])}
        pair = [Turn(ours, {**case, **common}), Turn(other, {**case, **common, **fewer})]
        return [*pair, Turn(reader, {}, READ_RUNS)]

    def _row(
        self, peer: Peer, weights: str, case: dict, turns_: Sequence[Turn], outcomes: Outcomes
    ) -> Row:
        for name, outcome in outcomes.items():
            if outcome.why_not:
                kind = PeerFails if name == peer.name else RuntimeError
                raise kind(f"{name} fails at {case}: {outcome.why_not}")
        seconds = [outcomes[turn.program.name].seconds for turn in turns_]
        generates = "generated" in case
        tokens, peer_tokens = (
            turn.case.get("prompt") or turn.case["generated"] for turn in turns_[:2]
        )
        label = f"tg{tokens}@{case['context']}" if generates else f"pp{tokens}"
        return Row(
            case=label,
            tokens=tokens,
            peer_tokens=peer_tokens,
            ours=seconds[0],
            peer=seconds[1],
            target=peer.target(weights, label[:2]),
            read=[READ_BYTES / each for each in seconds[2]] if generates else [],
            step_bytes=llm_model.step_bytes(self._checkpoint, weights, case) if generates else 0.0,
        )


def _prepare(turns_: Sequence[Turn]) -> Outcomes:
    """Lets the programs of a case get ready."""
    outcomes: Outcomes = {}
    for turn in turns_:
        outcomes |= interleaved.prepare([turn.program], turn.case)
    return outcomes


def _measure(turns_: Sequence[Turn], outcomes: Outcomes, rounds: int) -> None:
    """Adds the times of so many rounds."""
    for _ in range(rounds):
        for turn in turns_:
            interleaved.measure([turn.program], turn.case, outcomes, 1, 0, turn.runs)


def _cases(options: argparse.Namespace, peer: Peer) -> Iterator[dict]:
    """What is measured; a slow program gets no longer prompts than it can take, and no context."""
    most = peer.max_prompt or max(options.pp, default=0)
    for prompt in dict.fromkeys(min(each, most) for each in options.pp):
        yield {"prompt": prompt}
    for context in options.context if options.tg else ():
        if peer.max_prompt is None or context == 0:
            yield {"generated": options.tg, "context": context}


@contextmanager
def _started(
    spec: str, name: str, threads: int, pythons: Sequence[str]
) -> Iterator[tuple[interleaved.Contender, str]]:
    """A program, and the interpreter that runs it: the first that has it.

    Raises Absent if none has.
    """
    reasons = []
    for python in pythons:
        started, absent = interleaved.start({name: spec}, threads, python)
        if started:
            break
        reasons.append(absent[name].splitlines()[0])
    else:
        raise Absent(reasons[-1])
    try:
        yield started[0], python
    finally:
        started[0].close()


def _estimate(options: argparse.Namespace) -> float:
    """Seconds that the command takes, what is to be built included."""
    total = 0.0
    for peer in options.peers:
        for weights in {*options.weights} & {*peer.weights}:
            for threads in options.threads:
                rounds = options.rounds * ROUND_SECONDS[weights] / (1.5 if threads > 1 else 1)
                total += START_SECONDS + (SLOW_SECONDS if peer.max_prompt else rounds)
            if not peer.is_built(options.work, weights):
                total += peer.build_seconds
    return total


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    names = ",".join(peer.name for peer in PEERS)
    folder = cache_folder() / "bench"
    add("--weights", default=",".join(WEIGHTS), metavar="TYPE,...",
        help=f"types that are compared in (default: {','.join(WEIGHTS)})")  # fmt: skip
    add("--threads", type=integers, default=[1, 2], metavar="N,...", help="default: 1,2")
    add("--peers", default=names, metavar="NAME,...", help=f"default: {names}")
    add("--pp", type=integers, default=[128, 512], metavar="N,...",
        help="lengths of prompts (default: 128,512); slow programs get shorter ones")  # fmt: skip
    add("--tg", type=int, default=64, metavar="N",
        help="tokens to generate (default: 64); 0 measures prompts alone")  # fmt: skip
    add("--context", type=integers, default=[0, 512], metavar="N,...",
        help="tokens before those (default: 0,512)")  # fmt: skip
    add("--rounds", type=int, default=ROUNDS, metavar="N",
        help=f"of each pair (default: {ROUNDS}); 0 compares answers alone")  # fmt: skip
    add("--quick", action="store_true", help="two rounds, short cases: to see that it works")
    add("--trials", type=int, default=TRIALS, metavar="N",
        help=f"schedules that MetaSchedule tries as it is built (default: {TRIALS})")  # fmt: skip
    add("--peers-python", metavar="PYTHON", help="has the programs that this interpreter lacks")
    add("--work", type=Path, default=folder, metavar="FOLDER",
        help=f"keeps what is built, and the results (default: {folder})")  # fmt: skip
    add("--report", action="store_true", help="show the saved results; measure nothing")
    options = parser.parse_args()
    options.work = options.work.expanduser().resolve()
    options.weights = options.weights.split(",")
    if unknown := {*options.weights} - {*WEIGHTS}:
        parser.error(f"no weights '{unknown.pop()}'; there are {', '.join(WEIGHTS)}")
    chosen = options.peers.split(",")
    if unknown := {*chosen} - {peer.name for peer in PEERS}:
        parser.error(f"no peer '{unknown.pop()}'; there are {names}")
    options.peers = [peer for peer in PEERS if peer.name in chosen]
    options.pythons = list(filter(None, [sys.executable, options.peers_python]))
    if options.quick:
        options.rounds, options.pp, options.tg, options.context = QUICK_ROUNDS, [128], 16, [0]
    return options


if __name__ == "__main__":
    sys.exit(guard("llm.py", main))
