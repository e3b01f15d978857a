"""A process takes a NUMA node by a lock, and is bound to its CPUs."""

import os
import subprocess
import sys

import pytest

from relax_mlir.errors import ExecutionError
from relax_mlir.llm.ray.numa import take_node
from relax_mlir.machine.limits import num_cpus

TAKE = """
import os, sys, threading
from pathlib import Path
from relax_mlir.llm.ray.numa import take_node
go = threading.Event()
threading.Thread(target=go.wait).start()
with take_node(Path(sys.argv[1])) as cpus:
    for thread in os.listdir("/proc/self/task"):
        assert os.sched_getaffinity(int(thread)) == cpus
    print(*cpus, flush=True)
    sys.stdin.read()
go.set()
"""


@pytest.fixture
def nodes(tmp_path):
    """A machine whose second node alone has a CPU of this process; the first one has no CPUs."""
    own = max(os.sched_getaffinity(0))
    for index, cpus in enumerate(["", f"{own}", f"{own + 5}-{own + 7},{own + 9}"]):
        folder = tmp_path / f"node{index}"
        folder.mkdir()
        (folder / "cpulist").write_text(f"{cpus}\n")
    return tmp_path


def test_one_process_has_a_node(nodes):
    command = [sys.executable, "-c", TAKE, str(nodes)]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline().split() == [str(max(os.sched_getaffinity(0)))]
    before = num_cpus()
    with pytest.raises(ExecutionError, match="no NUMA node"), take_node(nodes):
        pass
    assert num_cpus() == before
    first.kill()
    first.communicate()
    second = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (second.returncode, second.stderr) == (0, "")


def test_the_nodes_of_this_machine():
    code = "from relax_mlir.llm.ray.numa import take_node\nwith take_node() as cpus: print(*cpus)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    taken = set(map(int, run.stdout.split()))
    assert taken, run.stderr
    assert taken <= os.sched_getaffinity(0)
