"""Bytes of activations of a decoder: planned, not planned, planned by TVM (paper Table 2).

    python benchmarks/memory.py --peers-python PYTHON
    python benchmarks/memory.py --layers 2 --prompts 128,1024 --json FILE

Nothing runs: sizes follow from the plans. README.md says what is compared.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from memory_decoder import ROWS, Config, decoder, lowered

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.liveness import Lifetime, Liveness
from relax_mlir.analysis.memory import Memory, returned_allocations
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import AllocStorageOp, AllocTensorOp, TensorType
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, parse
from relax_mlir.tools.cli import described, guard, integers
from relax_mlir.transforms.plan_memory import size_in_bytes

PEER = Path(__file__).parent / "peers" / "memory_tvm.py"
PAGE = 4096
"""What the pool of TVM's runtime rounds sizes to."""
SAVED = {"prefill": 0.22, "decode": 0.40}
"""What the paper's Table 2 has."""
PLAN = "relax-plan-memory,relax-check-memory-plan"
MIB = 2**20


@dataclass(frozen=True)
class Function:
    """The temporaries of a function before planning, and the sizes of its storages after it."""

    temporaries: Sequence[tuple[Expr, Lifetime]]
    storages: Sequence[Expr]


@dataclass
class Pool:
    """A pool that hands out what it was given back of the same size, and returns nothing."""

    taken: int = 0
    free: Counter[int] = field(default_factory=Counter)

    def take(self, size: int) -> int:
        """Takes a piece of memory; its size, rounded."""
        size = -(-size // PAGE) * PAGE
        if self.free[size]:
            self.free[size] -= 1
        else:
            self.taken += size
        return size

    def give_back(self, size: int) -> None:
        """Makes a piece available again."""
        self.free[size] += 1


@dataclass(frozen=True)
class Row:
    """Bytes after all calls of a phase."""

    graph: str
    phase: str
    calls: Sequence[int]
    separate: int
    pool: int
    planned: int
    bounded: int | None
    unbounded: int | None

    @property
    def saved(self) -> float:
        """The share of the pool that the plan saves."""
        return 1 - self.planned / self.pool

    def is_met(self) -> bool:
        """Whether as much is saved as the paper does, and TVM takes no less."""
        return self.saved >= SAVED[self.phase] and (
            self.bounded is None or self.planned <= self.bounded
        )

    def cells(self) -> Iterator[str]:
        """The cells of the table."""
        yield self.graph
        yield f"{self.phase} {', '.join(map(str, self.calls))}"
        yield from (f"{size / MIB:.1f}" for size in (self.separate, self.pool, self.planned))
        yield f"{100 * self.saved:.0f} %"
        for size in (self.bounded, self.unbounded):
            yield "" if size is None else f"{size / MIB:.1f}"
        yield "" if self.is_met() else "missed"


def main() -> int:
    """Runs the command; 1 if less is saved than in the paper, or TVM's plan is smaller."""
    options = _options()
    config = Config(layers=options.layers)
    calls = {"prefill": options.prompts, "decode": options.batches}
    rows = []
    print("| graph | calls | separate, MiB | pool | planned | saved | TVM | TVM, no bounds | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in _measure(config, calls, options.peers_python):
        rows.append(row)
        print(f"| {' | '.join(row.cells())} |", flush=True)
    if options.json:
        text = json.dumps([asdict(row) for row in rows], indent=1)
        Path(options.json).write_text(text, encoding="utf-8")
    return 0 if all(row.is_met() for row in rows) else 1


def _measure(config: Config, calls: dict[str, list[int]], peers_python: str) -> Iterator[Row]:
    """Rows for our decoder, then for TVM's if there is one."""
    bounds = {phase: max(sizes) for phase, sizes in calls.items()}
    theirs = _planned_by_tvm(config, bounds, peers_python)
    with make_context(), ir.Location.unknown(), graph.remembering():
        sources = {"ours": _functions(decoder(config, bounds), _lowering())}
        if theirs:
            sources["as TVM lowers it"] = _functions(lowered(theirs), "")
    for source, functions in sources.items():
        for phase, sizes in calls.items():
            function = functions[phase]
            bounded = unbounded = None
            if theirs:
                bounded = _total(map(parse, theirs[phase]["bounded"]), max(sizes))
                unbounded = _pooled_storages([*map(parse, theirs[phase]["unbounded"])], sizes)
            yield Row(
                source,
                phase,
                sizes,
                sum(size.evaluate({ROWS: max(sizes)}) for size, _ in function.temporaries),
                _pooled(function, sizes),
                max(_total(function.storages, size) for size in sizes),
                bounded,
                unbounded,
            )


def _lowering() -> str:
    """The passes of the default pipeline up to explicit allocations, but schedules."""
    steps = pipeline("native").removeprefix("builtin.module(").split(",")
    end = next(index for index, step in enumerate(steps) if step.startswith("relax-plan-memory"))
    return ",".join(step for step in steps[:end] if not step.startswith("relax-schedule"))


def _functions(module: ir.Module, passes: str) -> dict[str, Function]:
    """The temporaries and planned storages of each public function, by name."""
    Pipeline.parse(f"builtin.module({passes})").run(module)
    temporaries = {
        function.name.value: list(
            _temporaries(function, Memory(functions_by_name(module.operation)))
        )
        for function in graph_functions(module.operation)
    }
    Pipeline.parse(f"builtin.module({PLAN})").run(module)
    return {
        function.name.value: Function(
            temporaries[function.name.value],
            [parse(str(op.bytes)) for op in walk_ops(function, AllocStorageOp)],
        )
        for function in graph_functions(module.operation)
    }


def _temporaries(function: func.FuncOp, memory: Memory) -> Iterator[tuple[Expr, Lifetime]]:
    liveness, returned = Liveness(function, memory), returned_allocations(function, memory)
    for op in walk_ops(function, AllocTensorOp):
        if op.result not in returned:
            yield size_in_bytes(TensorType.of(op.result)), liveness.lifetime(op.result)


def _pooled(function: Function, calls: Sequence[int]) -> int:
    """Bytes of a pool from which each tensor is taken, and given back after its last use."""
    pool = Pool()
    for rows in calls:
        live: list[tuple[int, int]] = []
        for size, lifetime in function.temporaries:
            for end, taken in [entry for entry in live if entry[0] < lifetime.begin]:
                live.remove((end, taken))
                pool.give_back(taken)
            live.append((lifetime.end, pool.take(size.evaluate({ROWS: rows}))))
        for _, taken in live:
            pool.give_back(taken)
    return pool.taken


def _pooled_storages(storages: Sequence[Expr], calls: Sequence[int]) -> int:
    """Bytes of a pool from which each call takes its storages, as TVM's runtime does."""
    pool = Pool()
    for rows in calls:
        for taken in [pool.take(size.evaluate({ROWS: rows})) for size in storages]:
            pool.give_back(taken)
    return pool.taken


def _total(storages: Iterable[Expr], rows: int) -> int:
    return sum(size.evaluate({ROWS: rows}) for size in storages)


def _planned_by_tvm(config: Config, bounds: dict[str, int], python: str) -> dict[str, dict]:
    """What `peers/memory_tvm.py` writes; nothing if the interpreter has no TVM."""
    if subprocess.run([python, "-c", "import tvm"], check=False, capture_output=True).returncode:
        print(f"{python} has no TVM", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps({**asdict(config), "bounds": bounds}), encoding="utf-8")
        done = subprocess.run(
            [python, PEER, path], check=False, capture_output=True, encoding="utf-8"
        )
    if done.returncode:
        raise RuntimeError(f"TVM failed:\n{done.stderr}")
    return json.loads(done.stdout)


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    add("--layers", type=int, default=32, metavar="N", help="of the decoder (default: 32)")
    add("--prompts", type=integers, default=[128, 256, 512, 1024], metavar="N,...",
        help="lengths, one call after the other (default: 128,256,512,1024)")  # fmt: skip
    add("--batches", type=integers, default=[1, 16, 32, 64], metavar="N,...",
        help="sequences that decode a token each (default: 1,16,32,64)")  # fmt: skip
    add("--peers-python", default=sys.executable, metavar="PYTHON", help="has TVM")
    add("--json", metavar="FILE", help="writes the rows")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(guard("memory.py", main))
