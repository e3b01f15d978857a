"""Files of prompts on Ray, whose workers may be killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from ray_processes import processes_of
from tiny_models import random_weights, write_gguf

ray = pytest.importorskip("ray")

COUNT = 200


def test_all_answers_come_once_though_a_worker_is_killed(tmp_path):
    tiny = write_gguf(tmp_path / "tiny.gguf", random_weights())
    prompts, output = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    lines = [{"id": i, "prompt": "h" * (i % 40 + 1), "seed": i} for i in range(COUNT)]
    prompts.write_text("\n".join(map(json.dumps, lines)))
    command = [sys.executable, "-m", "relax_mlir.tools.relax_llm", "batch", str(tiny), str(prompts)]
    command += ["-o", str(output), "--weights", "f32", "--threads", "1", "--raw"]
    command += ["--max-tokens", "9", "--temperature", "1.5", "--max-sequences", "2"]
    process = subprocess.Popen([*command, "--ray", "local", "--workers", "2"])
    deadline = time.monotonic() + 120
    while not (output.exists() and output.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.001)
    done = output.read_bytes().count(b"\n")
    os.kill(processes_of(b"ray::EngineWorker", process.pid)[0], signal.SIGKILL)
    assert done < COUNT
    assert process.wait(120) == 0
    given = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(each["id"] for each in given) == list(range(COUNT))
    alone = tmp_path / "alone.jsonl"
    command[command.index(str(output))] = str(alone)
    subprocess.run(command, check=True)
    texts = {each["id"]: each["text"] for each in map(json.loads, alone.read_text().splitlines())}
    assert {each["id"]: each["text"] for each in given} == texts


def test_the_address_of_a_cluster(tmp_path):
    """One that runs already, which another process connects to and leaves as it is."""
    context = ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        code = (
            "import sys\nfrom relax_mlir.llm.ray.cluster import connected\n"
            "with connected(sys.argv[1]):\n    import ray\n    print(len(ray.nodes()))"
        )
        address = context.address_info["gcs_address"]
        run = subprocess.run(
            [sys.executable, "-c", code, address], capture_output=True, text=True, timeout=100
        )
        assert run.stdout.split() == ["1"], run.stderr
        assert ray.get(ray.put(5)) == 5
    finally:
        ray.shutdown()
