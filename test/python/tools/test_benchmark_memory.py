"""The memory experiment without other programs: what the paper saves is saved."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def test_plans_of_a_decoder_save_what_the_paper_saves() -> None:
    command = [sys.executable, BENCHMARKS / "memory.py", "--layers", "2"]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    prefill, decode = (line.split(" | ") for line in done.stdout.splitlines()[2:4])
    assert prefill[1:5] == ["prefill 128, 256, 512, 1024", "280.0", "176.0", "92.0"]
    assert decode[1:5] == ["decode 1, 16, 32, 64", "18.0", "10.6", "5.8"]
