"""Calls per second of one executable from several threads at a time, each call on one thread.

    python benchmarks/callers.py
    python benchmarks/callers.py --callers 1,2,4,8 --rows 1,64 --seconds 2

Each call has its own context, so that calls contend only for Python's lock, while they check their
arguments. Separate processes, which share nothing, show what the machine allows. README.md says
more.
"""

import argparse
import multiprocessing
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

from relax_mlir.executable import Function, load
from relax_mlir.tools.cli import described, guard, integers

WIDTH = 512
ROUNDS = 5
MODULE = f"""
!x = tensor<?x{WIDTH}xf32, #graph.shape<["n", {WIDTH}]>>
func.func @main(%x: !x, %w: tensor<{WIDTH}x{WIDTH}xf32>) -> !x {{
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<{WIDTH}x{WIDTH}xf32>) -> !x
  %1 = "graph.nn_softmax"(%0) {{axis = 1 : i64}} : (!x) -> !x
  return %1 : !x
}}
"""


def main() -> int:
    """Runs the command."""
    from relax_mlir.compiler import compile_to_file

    options = _options()
    print_table(compile_to_file(MODULE), options.rows, options.callers, options.seconds)
    return 0


def print_table(path: Path, rows: Sequence[int], callers: Sequence[int], seconds: float) -> None:
    """Prints the calls per second for each count of rows and of callers, interleaved."""
    max_callers, function = max(callers), load(path)["main"]
    heads = ["rows", *map("{} callers".format, callers), f"{max_callers} processes"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for count in rows:
        rounds = [
            [
                *(calls_per_second(function, count, each, seconds) for each in callers),
                _of_processes(path, count, max_callers, seconds),
            ]
            for _ in range(ROUNDS)
        ]
        rates = [statistics.median(results) for results in zip(*rounds, strict=True)]
        print(f"| {count} | {' | '.join(f'{rate:.0f}' for rate in rates)} |", flush=True)


def _of_processes(path: Path, rows: int, count: int, seconds: float) -> float:
    """The rate of `count` processes, each with one caller."""
    context = multiprocessing.get_context("spawn")
    begin, results = context.Barrier(count), context.SimpleQueue()
    arguments = (path, rows, seconds, begin, results)
    processes = [context.Process(target=_in_process, args=arguments) for _ in range(count)]
    for process in processes:
        process.start()
    rate = sum(results.get() for _ in processes)
    for process in processes:
        process.join()
    return rate


def _in_process(
    path: Path, rows: int, seconds: float, begin: Barrier, results: "multiprocessing.SimpleQueue"
) -> None:
    function = load(path)["main"]
    begin.wait()
    results.put(calls_per_second(function, rows, 1, seconds))


def calls_per_second(function: Function, rows: int, callers: int, seconds: float) -> float:
    """The rate of `callers` threads that call at the same time; raises if results differ."""
    generator = np.random.default_rng(rows)
    x, w = (generator.standard_normal((n, WIDTH), np.float32) for n in (rows, WIDTH))
    expected = function(x, w, threads=1)
    counts, wrong = [0] * callers, []
    end = time.perf_counter() + seconds

    def work(index: int) -> None:
        result = expected
        while time.perf_counter() < end:
            result = function(x, w, threads=1)
            counts[index] += 1
        if not np.array_equal(result, expected):
            wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(callers)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise RuntimeError(f"callers {wrong} got other results than one caller alone")
    return sum(counts) / (time.perf_counter() - begin)


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    add("--callers", type=integers, default=[1, 2, 4], help="threads that call (1,2,4)")
    add("--rows", type=integers, default=[1, 16, 128], help="rows of the product (1,16,128)")
    add("--seconds", type=float, default=1.0, help="of each measurement (1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(guard("callers.py", main))
